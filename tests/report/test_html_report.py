"""The HTML report of a session, and the pictures of a plan."""

import re
from pathlib import Path

import pytest
from tests.planner.machines import HOCKNEY, LOGGP, POSTAL
from tests.tuning.examples import alone, outcome, session

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.model.machine import Machine
from collwise.model.topology import parse
from collwise.planner.choose import plan
from collwise.report import html_report
from collwise.report.html_report import LARGEST_DRAWN, draw_plan, write_report
from collwise.simulator import simulate


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pages") / "new" / "report.html"
    found = session(outcome(512, 1.5, dropped=4), outcome(4096, 0.7, dropped=3), alone(8))
    assert write_report(found, path) == path
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_a_report_needs_nothing_else(page: str) -> None:
    """No script; every reference is to the page itself."""
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert "<script" not in page
    assert "@import" not in page
    references = re.findall(r'(?:href|src|data)="([^"]*)"', page)
    references += re.findall(r"url\(([^)]*)\)", page)
    assert references
    assert all(r.startswith(("#", "data:")) for r in references)


def test_what_a_report_tells(page: str) -> None:
    text = re.sub(r"<[^>]*>", "", page)
    for words in (
        "Broadcast on 5 ranks, MPICH 5.0.2",
        "nothing to race",
        "Of persistent calls, collwise is clearly faster than the library&#39;s own in 1 of 2 r",
        "Of blocking calls, the library&#39;s own stays in all 2 races",
        "Every byte was checked on every rank, before and after every race.",
        "7 repetitions were dropped because ranks did not start together.",
        "No schedule can beat, by the measured machine: broadcast of 512 bytes: ",
    ):
        assert words in text
    for title in ("The machine: t0 and λ", "Tree: broadcast/", "Timeline: broadcast/"):
        assert f'aria-label="{title}' in page
    assert page.count('<tr class="won">') == 1  # of two calls at three sizes
    for call in ("Bcast", "Bcast_init"):
        assert page.count(f"<td>{call}</td>") == 3
    # The schedule that is drawn is the one with the gain.
    assert f'aria-label="Tree: {outcome(512, 1.5).ours}, 512 B, root 1, 5 ranks"' in page


def test_a_report_of_sources(tmp_path: Path) -> None:
    found = session(outcome(512, 1.5, sources=(0, 3)))
    page = write_report(found, tmp_path / "report.html").read_text(encoding="utf-8")
    ours = found.outcomes[0].ours
    assert f'aria-label="Mesh: {ours}, 512 B from each of 2 sources, 5 ranks"' in page
    assert f'aria-label="Timeline: {ours}, ' in page
    assert "Tree: " not in page
    assert "s_to_p of 512 bytes from each of 2 ranks: " in page


def test_a_plan_on_a_mesh_is_drawn_on_it(tmp_path: Path) -> None:
    """With the links of a mesh; on other networks, without."""
    sizes = {}
    for name in ("mesh:2x4", "hypercube:3"):
        made = plan(
            "s_to_p", ranks=8, nbytes=64, machine=HOCKNEY, sources=[0, 3], topology=parse(name)
        )
        path, timeline = draw_plan(made, tmp_path / f"{name[:4]}.svg")
        assert path is not None
        sizes[name] = path.stat().st_size
        assert timeline.name == f"{name[:4]}-timeline.svg"
    assert sizes["mesh:2x4"] > 1.5 * sizes["hypercube:3"]


def test_a_report_without_races(tmp_path: Path) -> None:
    path = write_report(session(alone(8)), tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert "nothing to race" in page
    assert "Timeline: " not in page
    assert page.count("<svg") == 2  # the machine, and where which algorithm is the best


def test_a_report_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(session(alone(8)), path)
    assert "old" not in path.read_text(encoding="utf-8")[:3]
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        InvalidArgument, match=r"write the report .*name another file with --report"
    ):
        write_report(session(alone(8)), tmp_path / "file" / "report.html")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(("name", "begin"), [("p.svg", b"<?xml"), ("p.png", b"\x89PNG")])
def test_a_plan_is_drawn_twice(tmp_path: Path, name: str, begin: bytes) -> None:
    made = plan("broadcast", ranks=8, nbytes=1000, machine=POSTAL)
    path = tmp_path / name
    timeline = tmp_path / name.replace("p.", "p-timeline.")
    drawn = draw_plan(made, path)
    assert (drawn.space, drawn.time) == (path, timeline)
    assert drawn.paths == [path, timeline]
    assert {*tmp_path.iterdir()} == {path, timeline}
    assert path.read_bytes().startswith(begin)
    assert timeline.read_bytes().startswith(begin)
    assert path.read_bytes() != timeline.read_bytes()


def test_what_combines_is_drawn_in_time_only(tmp_path: Path) -> None:
    """And the timeline has the name of a timeline, as always."""
    made = plan("reduce", ranks=8, nbytes=64, machine=POSTAL)
    drawn = draw_plan(made, tmp_path / "p.svg")
    assert (drawn.space, drawn.time) == (None, tmp_path / "p-timeline.svg")
    assert drawn.paths == [*tmp_path.iterdir()] == [drawn.time]


@pytest.mark.parametrize(
    ("machine", "algorithm", "one"),
    [
        (POSTAL, "binomial", True),
        (POSTAL, "scatter_ring", True),  # t0 is the same for parts
        (HOCKNEY, "binomial", True),
        (HOCKNEY, "scatter_ring", False),
    ],
)
def test_times_in_t0_where_it_is_one(machine: Machine, algorithm: str, one: bool) -> None:
    """Messages of several lengths keep their senders busy for several times."""
    schedule = ALGORITHMS[f"broadcast/{algorithm}"].schedule(8, 4096, 0)
    unit = html_report._unit(simulate(schedule, machine))
    assert unit == (machine.message(4096).gap if one else None)


@pytest.mark.parametrize(("ranks", "nbytes", "machine"), [(1, 8, POSTAL), (6, 30_000, LOGGP)])
def test_odd_plans_are_drawn(tmp_path: Path, ranks: int, nbytes: int, machine: object) -> None:
    made = plan("broadcast", ranks=ranks, nbytes=nbytes, machine=machine)  # type: ignore[arg-type]
    draw_plan(made, tmp_path / "p.svg")
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize("name", ["p.pdf", "p", "p.html"])
def test_other_kinds_of_pictures(tmp_path: Path, name: str) -> None:
    made = plan("broadcast", ranks=4, nbytes=1000, machine=HOCKNEY)
    with pytest.raises(InvalidArgument, match=r"give a name that ends in \.png or \.svg"):
        draw_plan(made, tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_too_many_ranks_to_draw(tmp_path: Path) -> None:
    made = plan("broadcast", ranks=LARGEST_DRAWN + 1, nbytes=8, machine=POSTAL)
    with pytest.raises(InvalidArgument) as caught:
        draw_plan(made, tmp_path / "p.svg")
    assert caught.value.seen == "4097 ranks"
    assert caught.value.remedy == "draw a plan for at most 4096 ranks"
    assert not [*tmp_path.iterdir()]
