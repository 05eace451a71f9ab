"""From a schedule to a running collective.  Read in this order:

`instructions`  the plan of one rank: a list of instructions over slots, plain data
`interpreter`   the plan bound to buffers, and executed in Python
`persistent`    requests that start and complete a plan, and lists of requests
`executor`      what all collectives share: reads buffers, then chooses, binds and runs a plan
`broadcast_executor`, `combine_executor`, `gather_executor`: what differs between collectives
`executor_choice`   which of these executors serves a schedule
"""
