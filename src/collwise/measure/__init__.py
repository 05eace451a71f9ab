"""Campaigns that decide what to time, and fits that compute t0 and λ; no module has a clock.

MPI or the simulator runs what a `Campaign` asks for, and returns seconds.  Read in this order:
`probes` (what is timed), `fit` (from times to t0 and λ), `statistics` (medians and their
intervals), `breakpoints` (protocol switches), `campaign` (what to time next), `probe_costs`
(estimates the time of a probe), `size_campaign` (t0 and λ over sizes), `stability` (the verdict),
`profile_building`.

For machines with levels, `clustering` finds the groups, `level_probes` says what to time and on
which ranks, `level_campaign` measures level by level, and `port_campaign` measures the ports that
ranks share. `combine_cost` has the campaign for γ, and `race` judges races between collectives.
Every probe that several ranks time together can also run in the simulator
(`simulator/simulated_prober.py`).
"""
