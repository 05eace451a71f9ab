"""The HTML report of a session, and the pictures of a plan."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from collwise.algorithms.registry import ALGORITHMS
from collwise.errors import InvalidArgument
from collwise.figures.report_pictures import machine_picture
from collwise.measure.race import MARGIN
from collwise.model.machine import Machine
from collwise.model.placement import Placement
from collwise.planner.choose import plan
from collwise.report import schedule_files
from collwise.report.html_report import render, write_report
from collwise.report.schedule_files import check_drawable, draw_plan, unit_of
from collwise.simulator import simulate
from collwise.tuning.outcomes import Tuning
from tests.planner.machines import HOCKNEY, POSTAL
from tests.profiles.example import FINGERPRINT, PROVENANCE, point, profile
from tests.report.html_page import Page
from tests.tuning.examples import WITH_NODES, alone, outcome, session

pytestmark = pytest.mark.no_cover

LOSE: dict[str, Any] = {"gain": 0.7, "blocking_gain": 0.6}


def written(tuning: Tuning, folder: Path) -> str:
    path = folder / "new" / "report.html"
    assert write_report(tuning, path) == path
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    outcomes = outcome(512, 1.5, dropped=4), outcome(4096, **LOSE, dropped=3), alone(8)
    return written(session(*outcomes), tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_one_whole_document(html: str, page: Page) -> None:
    assert html.lstrip().startswith("<!DOCTYPE html>")
    assert page.doctype == "DOCTYPE html"
    tags = ("html", "head", "title", "body", "main", "h1")
    assert [len(page.named(tag)) for tag in tags] == [1] * len(tags)
    assert page.named("html")[0]["lang"] == "en"


def test_it_needs_nothing_else(html: str, page: Page) -> None:
    """No script; every reference is to the page itself."""
    assert not page.named("script")
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                assert value is not None
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert not re.search(r"@import|url\((?!#)", html)
    assert set(re.findall(r"https?://[^\s\"'<>]+", html)) == {"http://www.w3.org/2000/svg"}
    names = [a["id"] for _, a in page.tags if "id" in a]
    assert len(names) == len(set(names))


def test_it_begins_with_what_came_of_it(page: Page) -> None:
    text = page.text
    assert "Collectives on 5 ranks, MPICH 5.0.2 measurement: stable" in text
    assert re.search(
        r"4 calls were raced against MPICH 5\.0\.2's own\. collwise is clearly faster in 1 of them"
        r" and serves these from now on, up to 1\.\d\d× as fast \(Bcast_init of 512 B\); .*"
        r" is 1\.\d\d×\. Predicted times are off by a factor of \d+\.\d\d in the median",
        text,
    )
    overview = page.words[: page.words.index("broadcast (Bcast)")]
    assert [word for word in overview if word.startswith("Bcast")] == ["Bcast", "Bcast_init"]
    assert [word for word in overview if word in ("512 B", "4 KiB", "8 B")] == [
        "512 B", "4 KiB", "8 B"
    ] * 2  # fmt: skip
    assert text.index("About this page") > text.index("The machine: t0 and λ")


@pytest.fixture(scope="module")
def both() -> Tuning:
    """Of two collectives, one call each that is won."""
    return session(outcome(512, 1.5), outcome(512, 1.2, sources=(0, 3)), outcome(4096, **LOSE))


@pytest.fixture(scope="module")
def page_of_both(both: Tuning, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(written(both, tmp_path_factory.mktemp("pages")))


def test_one_picture_in_the_open_for_each_collective(page_of_both: Page) -> None:
    """And the machine's; all others, and all tables but the first, are folded."""
    page = page_of_both
    labels = [svg["aria-label"] for svg in page.named("svg")]
    in_the_open = [label for label, folded in zip(labels, page.folded["svg"], strict=True)
                   if not folded]  # fmt: skip
    assert in_the_open == [
        "Speed-up of broadcast over the library's own",
        "Speed-up of allgatherv over the library's own",
        "The machine: t0 and λ",
    ]
    assert page.folded["table"] == [False] + [True] * (len(page.folded["table"]) - 1)
    assert page.text.count("One point per size: ") == 1, "a caption is there once"


def test_the_schedules_that_won_are_drawn(both: Tuning, page_of_both: Page) -> None:
    page = page_of_both
    ours, others, _ = (made.ours for made in both.outcomes)
    for title in (
        f"Tree: {ours}, 512 B, root 1, 5 ranks",
        f"Timeline: {ours}, 512 B, root 1, 5 ranks",
        f"Mesh: {others}, 512 B from each of 2 sources, 5 ranks",
        f"Timeline: {others}, 512 B from each of 2 sources, 5 ranks",
    ):
        assert page.words.count(title) == 1
        assert title in [svg["aria-label"] for svg in page.named("svg")]
    assert len(page.named("svg")) == 3 + 4


def test_every_call_and_every_competitor_is_there(page: Page) -> None:
    assert [a.get("class") for a in page.named("tr")].count("won") == 1  # of two at three sizes
    for call in ("Bcast", "Bcast_init"):
        assert page.words.count(call) == 3 + 1  # with the overview
    assert "broadcast of 512 bytes: 30 repetitions of each, 4 dropped" in page.text
    assert "dropped for all of them, here 7 in all" in page.text
    for label in outcome(512, 1.5).race.samples:
        name = label.removeprefix("broadcast/").partition("(")[0].strip()
        assert name in page.text


def test_it_teaches(page: Page) -> None:
    for term in ("t0(m)", "λ(m)", "Intervals", "Lower bound", "maximum over ranks", "tie"):
        assert term in page.text
    assert f"above {1 + MARGIN:.2f}" in page.text
    assert {"k = 1", "k = 2", "k = 4"} <= set(page.words)
    assert "[2.00 … 4.00], 8" in page.text
    for fact in ("Test CPU", "Linux-6.1", "mpi4py 4.1.2", "node1 (5 ranks)", PROVENANCE.created):
        assert fact in page.text


ADVICE = ("measure while nothing else runs",)


def test_without_races(tmp_path: Path) -> None:
    page = Page(written(Tuning(profile(advice=ADVICE), ()), tmp_path))
    assert "Nothing was raced: this page shows the machine alone." in page.text
    assert len(page.named("svg")) == 1
    assert "Do not trust" not in page.text
    assert ADVICE[0] in page.text


def test_nothing_won(tmp_path: Path) -> None:
    page = Page(written(session(outcome(512, **LOSE)), tmp_path))
    assert "Nothing was clearly faster: the library's own stays." in page.text
    assert "The schedules that won" not in page.text


def test_noise_is_said_loudly_and_that_there_was_nothing_to_race(tmp_path: Path) -> None:
    noisy = profile(verdict="noisy: the two experiments disagree", advice=ADVICE)
    page = Page(written(Tuning(noisy, (alone(8),)), tmp_path))
    assert "measurement: noisy" in page.words
    alarm = page.text.index("Do not trust the predictions")
    assert alarm < page.text.index("noisy: the two experiments disagree")
    assert page.text.index(ADVICE[0]) < page.text.index("The machine: t0 and λ")
    assert "nothing to race" in page.text
    assert not [a for a in page.named("svg") if "Timeline" in (a["aria-label"] or "")]


HOSTILE = "<script>alert('x')</script>\"&<b>$\\frac{</b>"


def test_everything_is_escaped(tmp_path: Path) -> None:
    fields = ("created", "collwise", "python", "mpi4py", "system", "command")
    texts: dict[str, Any] = dict.fromkeys(fields, HOSTILE)
    made = structs.replace(PROVENANCE, hosts={HOSTILE: 1}, notes=(HOSTILE,), **texts)
    measured = profile(
        [point(8, "nonblocking", verdict=HOSTILE)],
        verdict="noisy: " + HOSTILE,
        advice=(HOSTILE,),
        provenance=made,
        fingerprint=structs.replace(FINGERPRINT, mpi_library=HOSTILE),
    )
    lost = outcome(**LOSE)
    hostile = replace(lost, task=replace(lost.task, op=HOSTILE))
    page = Page(written(Tuning(measured, (hostile,)), tmp_path))
    assert not page.named("script")
    assert not page.named("b")
    assert page.text.count("<script>alert(") >= 12


def test_the_same_report_again_is_the_same_page_and_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    tuning = session()
    write_report(tuning, path)
    assert path.read_text(encoding="utf-8") == render(tuning)
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidArgument, match=r"write the report .*name another file"):
        write_report(session(), tmp_path / "file" / "report.html")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    ("machine", "algorithm", "one"),
    [
        (POSTAL, "binomial", True),
        (POSTAL, "scatter_ring", True),  # t0 is the same for parts
        (HOCKNEY, "binomial", True),
        (HOCKNEY, "scatter_ring", False),
        (Machine.levels([POSTAL, POSTAL], Placement.regular(2, 4)), "binomial", False),
    ],
)
def test_times_in_t0_where_it_is_one(machine: Machine, algorithm: str, one: bool) -> None:
    """Messages of several lengths, or levels, keep their senders busy for several times."""
    schedule = ALGORITHMS[f"broadcast/{algorithm}"].schedule(8, 4096, 0)
    unit = unit_of(simulate(schedule, machine))
    assert unit == (machine.message(4096).gap if one else None)


def test_too_many_messages_to_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_files, "MAX_DRAWN", 6)
    check_drawable(7, 6)
    made = plan("broadcast", ranks=40, nbytes=8, machine=POSTAL)
    with pytest.raises(InvalidArgument, match="messages; draw 6 at most: choose fewer ranks"):
        draw_plan(made, tmp_path / "q.svg")
    assert not [*tmp_path.iterdir()]


def test_the_machine_s_picture_says_of_which_level_it_is() -> None:
    assert machine_picture(WITH_NODES).title == "The machine: t0 and λ between nodes"
