"""Pictures of what was measured and planned, and the self-contained HTML report.

Every picture is a `matplotlib.figure.Figure` of its own; `style` turns one into a file or into SVG
for a page.  Nothing here touches pyplot or a program's own matplotlib settings.
"""
