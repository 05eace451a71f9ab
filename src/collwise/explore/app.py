"""The page of `collwise explore`, a marimo notebook: sliders on the left, pictures on the right.

`questions` computes what the page shows.
"""

from typing import Any

import marimo

app = marimo.App(width="full", app_title="collwise explore")

with app.setup:
    from dataclasses import replace
    from fractions import Fraction

    import marimo as mo

    from collwise.explore.questions import Question, choices, embedded
    from collwise.figures.style import svg


@app.cell
def _sliders() -> Any:
    lists = {name: list(values) for name, values in choices().items()}
    wide = {"full_width": True}
    collective = mo.ui.dropdown(lists["collective"], "broadcast", label="collective", **wide)
    machine = mo.ui.dropdown(lists["machine"], lists["machine"][0], label="machine", **wide)
    ranks = mo.ui.slider(2, 64, value=16, label="ranks", show_value=True, debounce=True)
    lam = mo.ui.slider(
        1, 10, 0.25, value=2, label="λ (postal model)", show_value=True, debounce=True
    )
    nbytes = mo.ui.slider(
        steps=[8 * 4**k for k in range(9)], value=512, label="bytes", show_value=True, debounce=True
    )
    distribution = mo.ui.dropdown(lists["distribution"], "equal", label="sources", **wide)
    sources = mo.ui.slider(1, 64, value=4, label="how many", show_value=True, debounce=True)
    return collective, distribution, lam, machine, nbytes, ranks, sources


@app.cell
def _asked(
    collective: Any,
    distribution: Any,
    lam: Any,
    machine: Any,
    nbytes: Any,
    ranks: Any,
    sources: Any,
) -> Any:
    asked = Question(
        collective=collective.value,
        ranks=ranks.value,
        nbytes=nbytes.value,
        lam=Fraction(str(lam.value)),
        machine=machine.value,
        distribution=distribution.value,
        sources=sources.value,
    )
    algorithm = mo.ui.dropdown(
        list(asked.best), asked.plan.choice.name, label="algorithm", full_width=True
    )
    return algorithm, asked


@app.cell
def _page(
    algorithm: Any,
    asked: Any,
    collective: Any,
    distribution: Any,
    lam: Any,
    machine: Any,
    nbytes: Any,
    ranks: Any,
    sources: Any,
) -> None:
    question = replace(asked, algorithm=algorithm.value)
    # Each control keeps its place: marimo would hand its value to whatever takes that place.
    controls = [collective, algorithm, machine, ranks, lam, nbytes]
    controls += [distribution, sources] if asked.has_sources else []
    parts = []
    for title, figure in question.figures().items():
        name = f"{asked.collective}-{title}.svg".replace(" ", "-").lower()
        button = mo.download(svg(figure).encode(), name, "image/svg+xml", label="SVG")
        heading = mo.hstack([mo.md(f"### {title}"), button], align="center")
        parts += [heading, mo.Html(embedded(figure))]
    mo.hstack(
        [
            mo.vstack([mo.md("# collwise explore"), *controls]),
            mo.vstack([mo.md(f"**{question.sentence}**"), mo.md(f"`{question.command}`"), *parts]),
        ],
        widths=[1, 3],
        align="start",
    )


if __name__ == "__main__":
    app.run()
