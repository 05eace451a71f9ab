"""Plans, races, sessions and simulations for people and for programs.  Nothing is computed here.

tables says what a table is; tuning_tables, simulation_tables and plan_document make tables, lines
and JSON documents; html_report makes the page, schedule_files the pictures of a schedule.
"""
