"""Campaigns that decide what to time, and fits of what the times mean; no module here has a clock.

MPI or the simulator runs what a `Campaign` asks for, and returns seconds.  Read in this order:
`probes` (what is timed), `fit` (from times to t0 and λ), `statistics` (medians and their
intervals), `breakpoints` (protocol switches), `campaign` (what to time next), `probe_costs`
(estimates how long that takes), `size_campaign` (t0 and λ over sizes), `stability` (the verdict),
`profile_building`.

For machines with levels, `clustering` finds the groups, `level_probes` says what to time and on
which ranks, `level_campaign` measures level by level, and `port_campaign` measures the ports that
ranks share. `combine_cost` has the campaign for γ, and `race` judges races between collectives.
The simulator must be able to replace the clock for whatever ranks time together
(`simulator/simulated_prober.py`).
"""
