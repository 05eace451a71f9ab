"""Measuring without a clock: what to time, and what the times mean.

MPI or the simulator runs the probes of a `Campaign` and returns seconds.  Read in this order:
`probes` (what is timed), `fit` (from times to t0 and λ; intervals are in `statistics`),
`breakpoints` (protocol switches), `campaign` (what to time next; `probe_costs` estimates how long
that takes), `stability` (the verdict), `profile_building`.

Machines with levels: `clustering` finds the groups, `level_probes` says what to time and on which
ranks, `level_campaign` measures level by level, and `port_campaign` the ports that ranks share.
Apart from these, `race` compares collectives, and `combine_cost` measures γ.  The simulator
must be able to supply the clock of whatever is measured (`simulator/simulated_prober.py`).
"""
