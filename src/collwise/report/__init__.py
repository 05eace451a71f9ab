"""Plans, races, sessions and simulations for people and for programs.

`tables` says what a table is.  `tuning_tables`, `simulation_tables`, `plan_document`,
`wisdom_tables`, `sweep_tables`, `comparison_tables`, `goal_tables`, `inspection_tables`,
`grid_tables`, `call_summary` and `scan_summary` make tables, lines and JSON documents.
`html_report` makes the page of a tuning session, `schedule_files` the pictures of a schedule.
`sweep_files` keeps a sweep while it grows.  `notebook` shows plans, traces and profiles.
"""
