"""Pictures of what was measured and planned, and the templates of HTML pages.

`tree_diagram`, `timeline` and `mesh_diagram` draw a schedule.  `latency_curves`, `race_charts`,
`sweep_chart`, `heat_map` and `candidate_bars` draw a machine, its races and plans.
`christmas_tree`, `combining_steps`, `delay_diagram` and `source_mesh` draw what the papers draw;
`line_chart` draws curves.  `report_pictures` makes the report's pictures; `page_templates` reads
the templates of pages, which contain most of the pages' words.  Modules share `style` (the look,
and saving), `axes` and `schedule_frame`.  A picture is a `matplotlib.figure.Figure` of its own;
nothing touches pyplot, and a program's matplotlib settings are restored after drawing.
"""
