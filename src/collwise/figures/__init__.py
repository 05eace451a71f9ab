"""Pictures of what was measured and planned, and the template of the HTML report.

Each module names what it draws: `tree_diagram`, `timeline` and `mesh_diagram` a schedule;
`latency_curves`, `race_charts`, `sweep_chart`, `heat_map` and `candidate_bars` a machine, its races
and plans; `christmas_tree`, `combining_steps`, `delay_diagram` and `source_mesh` what the papers
draw, and `line_chart` curves. `report_pictures` makes the report's pictures; `page_templates` reads
the templates of pages, which contain all of the pages' words.  Modules share `style` (the look, and
saving), `axes` and `schedule_frame`.  Every picture is a `matplotlib.figure.Figure` of its own;
nothing touches pyplot or a program's matplotlib settings.
"""
