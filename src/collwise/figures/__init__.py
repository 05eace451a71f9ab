"""Pictures of what was measured and planned, and the template of the HTML report.

Each module names what it draws: `tree_diagram`, `timeline` and `mesh_diagram` a schedule;
`latency_curves` and `race_charts` a machine and its races.  `report_pictures` gives them captions;
`page_templates` reads the templates of pages.  They share `style` (the look, and saving),
`axes` and `schedule_frame`.  Every picture is a `matplotlib.figure.Figure` of its own; nothing
touches pyplot or a program's own matplotlib settings.
"""
