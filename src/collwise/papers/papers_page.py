"""The page of the papers: claims, verdicts, figures and tables, in one self-contained file."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from collwise.figures.page_templates import template
from collwise.figures.style import save, svg
from collwise.papers.claims import VERDICTS, Verdict, counted
from collwise.papers.exhibits import HERE
from collwise.papers.reproduction import Reproduction
from collwise.system.files import refusing, replace_file

STYLES: dict[Verdict, str] = {
    "holds": "good",
    "holds as fitted": "fair",
    "holds in shape": "fair",
    "does not hold": "bad",
    "not recoverable": "aside",
    "not measured": "aside",
}
"""The CSS class of each verdict on the page."""


def markdown(reproductions: Sequence[Reproduction]) -> str:
    """The claims of all papers as Markdown tables, paper by paper."""
    lines = [
        "# The papers' claims",
        "",
        "Made by `collwise reproduce`; no verdict is written by hand.",
    ]
    for reproduction in reproductions:
        counts = counted(reproduction.findings)
        summary = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        lines += ["", f"## {reproduction.paper.title}", "", reproduction.paper.about, ""]
        lines += [f"{summary}; errata (…-e…) are not counted.", ""]
        lines += ["| claim | where | says | paper | ours | verdict | |", f"|{'---|' * 7}"]
        lines += [f"| {' | '.join(finding.row.values())} |" for finding in reproduction.findings]
    return "\n".join(lines) + "\n"


def page(reproductions: Sequence[Reproduction]) -> str:
    """Claims, verdicts, figures and tables of all papers as one HTML5 page."""
    papers = []
    for reproduction in reproductions:
        exhibits = []
        for exhibit in reproduction.paper.exhibits:
            for name, kind in ((exhibit.id, exhibit.kind), (exhibit.id + HERE, "measured here")):
                if (drawn := reproduction.drawn.get(name)) is not None:
                    picture = svg(drawn, exhibit.title) if isinstance(drawn, Figure) else None
                    exhibits.append((name, exhibit, kind, picture, None if picture else drawn))
        findings = reproduction.findings
        papers.append(
            {
                "paper": reproduction.paper,
                "counts": counted(findings),
                "claims": [f.row for f in findings if not f.claim.is_erratum],
                "errata": [f.row for f in findings if f.claim.is_erratum],
                "exhibits": exhibits,
            }
        )
    return template("papers_page.html.jinja").render(
        papers=papers, styles=STYLES, verdicts=VERDICTS
    )


def make_folder(folder: Path) -> None:
    """Make the folder if it is missing.  Raises InvalidArgument if that fails."""
    with refusing(f"write into {folder}", "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)


def write(reproductions: Sequence[Reproduction], folder: Path) -> list[Path]:
    """Write page, claims (Markdown) and figures (SVG, PNG) into a folder; returns the files' paths.

    Raises InvalidArgument if a file cannot be written.
    """
    texts = {"index.html": page, "claims.md": markdown}
    written = [folder / name for name in texts]
    make_folder(folder)
    for path, text in zip(written, texts.values(), strict=True):
        with refusing(f"write into {folder}", "name another folder"):
            replace_file(path, text(reproductions).encode())
    for reproduction in reproductions:
        for name, picture in reproduction.drawn.items():
            if isinstance(picture, Figure):
                for suffix in ("svg", "png"):
                    path = folder / reproduction.paper.key / f"{name}.{suffix}"
                    written.append(save(picture, path))
    return written
