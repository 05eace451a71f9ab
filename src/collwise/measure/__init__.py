"""Measuring without a clock: what to time, and what the times mean.

MPI or the simulator runs what a `Campaign` asks for, and returns seconds.  Read in this order:
`probes` (what is timed), `fit` (from times to t0 and λ; intervals are in `statistics`),
`breakpoints` (protocol switches), `campaign` (what to time next; `probe_costs` estimates how long
that takes), `size_campaign` (t0 and λ over sizes), `stability` (the verdict), `profile_building`.

Machines with levels: `clustering` finds the groups, `level_probes` says what to time and on which
ranks, `level_campaign` measures level by level, and `port_campaign` the ports that ranks share.
`combine_cost` is the campaign for γ.  Apart from these, `race` compares collectives.  The simulator
must be able to supply the clock of whatever ranks time together (`simulator/simulated_prober.py`).
"""
