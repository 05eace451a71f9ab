"""Papers run again: what can be chosen, figures, the page and the files."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from tests.report.html_page import Page

from collwise.errors import UnknownName
from collwise.figures.style import note
from collwise.papers.papers_page import page, write
from collwise.papers.reproduction import PAPERS, Reproduction, chosen, reproduce

PAPER_FIGURES = {
    "bruck1996": [*(f"fig{n}" for n in range(1, 19)), "table1", "table2"],
    "vandegeijn1991": [f"fig{n}" for n in (1, 2, 3, 5, 7, 8)],
    "hambrusch1998": [f"fig{n}" for n in range(1, 10)],
}
QUICK = ("fig1a", "fig2", "fig6", "fig7", "fig8", "fig9", "fig15", "fig16", "fig17", "fig18")


@pytest.mark.parametrize("key", PAPERS)
def test_every_figure_is_there(key: str) -> None:
    for name in PAPER_FIGURES[key]:
        assert PAPERS[key].selected([name]).exhibits


def test_what_can_be_chosen() -> None:
    assert [paper.key for paper in chosen(None, ())] == list(PAPERS)
    (paper,) = chosen("Bruck1996", ["FIG1", "b-c5"])
    assert [e.id for e in paper.exhibits] == ["fig1a", "fig1b"]
    assert [c.id for c in paper.claims] == ["B-c5a", "B-c5b"]
    with pytest.raises(UnknownName, match="bruck1996"):
        chosen("bruck", ())
    with pytest.raises(UnknownName, match="fig9"):
        chosen("bruck1996", ["fig19"])


@pytest.mark.parametrize("name", QUICK)
def test_exact_figures_of_the_postal_model(name: str) -> None:
    (exhibit,) = PAPERS["bruck1996"].selected([name]).exhibits
    assert exhibit.kind == "exact"
    assert isinstance(exhibit.draw(), Figure)


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", "fig5", "figports"])
def test_how_data_move_on_four_nodes(name: str) -> None:
    (exhibit,) = PAPERS["vandegeijn1991"].selected([name]).exhibits
    figure = exhibit.draw()
    assert isinstance(figure, Figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    parts = 8 if name == "figports" else 4
    assert texts.count("0") == parts  # at first, rank 0 has its own contribution in all parts
    ends = parts if name == "fig5" else 4 * parts  # in the end the root or everybody has all
    assert texts[:-4].count("all") >= ends
    steps = {"fig1": 4, "fig2": 2, "fig3": 4, "fig5": 4, "figports": 4}[name]
    assert f"after step {steps}" in texts
    assert f"after step {steps + 1}" not in texts


@pytest.fixture(scope="module")
def part() -> Reproduction:
    (found,) = reproduce(chosen("bruck1996", ["fig2", "table1", "B-c5", "B-e1", "B-c11b"]), {})
    return found


def test_the_page(part: Reproduction) -> None:
    measured = Reproduction(part.paper, part.findings, {**part.drawn, "fig2-measured": note("x")})
    read = Page(page([measured]))
    assert "1.618034" in read.text
    assert "not recoverable" in read.text
    assert "B-e1" in read.text
    assert "measured here" in read.text
    assert len(read.named("svg")) == 2
    sources = [a.get("src") or a.get("href") or "" for _, a in read.tags]
    assert not [source for source in sources if source.startswith(("http", "//"))]
    names = {a["id"] for _, a in read.tags if a.get("id")}
    assert {a["href"] for a in read.named("a")} <= {f"#{name}" for name in names}


def test_files(part: Reproduction, tmp_path: Path) -> None:
    written = write([part], tmp_path / "new")
    assert [path.name for path in written] == ["index.html", "claims.md", "fig2.svg", "fig2.png"]
    assert all(path.stat().st_size > 500 for path in written)


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", PAPERS)
def test_all_figures(key: str) -> None:
    for exhibit in PAPERS[key].exhibits:
        drawn = exhibit.draw()
        assert isinstance(drawn, Figure) or len(drawn) > 5, exhibit.id
