import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from collwise.figures.report_page import Report, Row, render
from collwise.figures.report_pictures import Picture, measured_pictures, schedule_pictures
from collwise.measure.race import MARGIN, Race
from collwise.profiles.profile import Profile
from tests.figures.examples import PROVENANCE, RACES, T0, drawn, point, profile, race

VOID = {"meta", "link", "br", "wbr"}
COLUMNS = ("size", "algorithm")
ROWS = tuple(Row((f"{r.nbytes} B", r.best), won=r.winner == r.best) for r in RACES)


class Page(HTMLParser):
    """The page's elements, its text, and whether every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.doctype = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_decl(self, decl: str) -> None:
        self.doctype = decl

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def pictures() -> tuple[Picture, ...]:
    timing, schedule = drawn("postal_tree", 8, lam=2)
    return (*measured_pictures(profile(), RACES), *schedule_pictures(timing, schedule, T0))


@pytest.fixture(scope="module")
def html(pictures: Sequence[Picture]) -> str:
    notes = ["every byte was checked"]
    return render(
        Report("Broadcast on 8 ranks", profile(), RACES, ROWS, pictures, notes, columns=COLUMNS)
    )


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def _bare(measured: Profile | None = None, races: Sequence[Race] = ()) -> Page:
    return Page(render(Report("t", measured or profile(), races)))


def test_one_whole_document(html: str, page: Page) -> None:
    assert html.lstrip().startswith("<!DOCTYPE html>")
    assert page.doctype == "DOCTYPE html"
    assert [len(page.named(tag)) for tag in ("html", "head", "title", "body", "main", "h1")] == [
        1
    ] * 6
    assert page.named("html")[0]["lang"] == "en"
    assert len(page.named("svg")) == 5


def test_it_needs_nothing_else(html: str, page: Page) -> None:
    assert not page.named("script")
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                assert value is not None
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert not re.search(r"@import|url\((?!#)", html)
    assert set(re.findall(r"https?://[^\s\"'<>]+", html)) == {"http://www.w3.org/2000/svg"}


def test_identifiers_are_unique_and_links_lead_somewhere(page: Page) -> None:
    names = [a["id"] for _, a in page.tags if "id" in a]
    assert len(names) == len(set(names))
    links = {a["href"] for _, a in page.tags if (a.get("href") or "").startswith("#")}
    assert links <= {f"#{name}" for name in names}


def test_pictures_can_be_heard(page: Page, pictures: Sequence[Picture]) -> None:
    assert [a["aria-label"] for a in page.named("svg")] == [p.title for p in pictures]
    assert all(p.caption in page.text for p in pictures)


def test_it_says_what_was_done_and_what_came_of_it(page: Page) -> None:
    assert re.search(
        "t0 and λ were measured between 5 ranks on 1 host with MPICH 5.0.2 at 4 message sizes,"
        " 8 B to 64 KiB; then 2 schedules for broadcast on 8 ranks raced the library's own at 8 B"
        " to 64 KiB. Of persistent calls, collwise is clearly faster than the library's own in 2 of"
        " 4 races, up to"
        r" 1\.\d\d× at 8 B; the geometric mean over all races is 1\.\d\d×, with 1 where",
        page.text,
    )


def test_every_race_and_every_competitor_is_there(page: Page) -> None:
    for label in {label for r in RACES for label in r.samples}:
        assert page.words.count(label.partition("(")[0]) >= len(RACES)
    assert page.text.count("3 repetitions dropped") == len(RACES)
    assert page.words.count("chosen for persistent calls") == 2
    assert page.words.count("library's own, chosen for persistent calls") == 2


def test_the_main_table(page: Page) -> None:
    assert all(column in page.words for column in COLUMNS)
    assert [a.get("class") for a in page.named("tr")].count("won") == 2


def test_raw_medians_of_the_experiments(page: Page) -> None:
    assert {"k = 1", "k = 2", "k = 4"} <= set(page.words)
    assert "[2.00 … 4.00], 8" in page.text
    assert "9.00 µs 11" in page.text


def test_it_teaches(page: Page) -> None:
    for term in ("t0(m)", "λ(m)", "Intervals", "Lower bound", "maximum over ranks", "tie"):
        assert term in page.text
    assert f"above {1 + MARGIN:.2f}" in page.text


def test_provenance_and_fingerprint(page: Page) -> None:
    for fact in ("Test CPU", "Linux-6.1", "mpi4py 4.1.2", "node1 (5 ranks)", PROVENANCE.created):
        assert fact in page.text


def test_without_races() -> None:
    page = _bare()
    assert "nothing was raced. The measurement is stable." in page.text
    assert "Nothing was raced: this page shows the machine alone." in page.text
    assert "Raw medians of the races" not in page.text


def test_one_race() -> None:
    won = _bare(races=[race(gain=1.5)]).text
    assert re.search(r"faster than the library's own in the only race: 1\.\d\d× at 512 B\.", won)
    lost = _bare(races=[race(gain=0.9)]).text
    assert "Of persistent calls, the library's own stays in the only race" in lost
    assert "blocking calls, " not in lost


def test_each_form_is_told_apart() -> None:
    """The same problem, won in blocking calls and lost in persistent ones."""
    marked = {f"{label} (blocking)": 1e-5 for label in ("broadcast/binomial", "broadcast/flat")}
    everything = race(gain=0.9, others_s=marked)
    own = everything.libraries[0]
    blocking = replace(
        everything,
        samples={
            label: everything.samples[label]
            if label == own
            else tuple(t / 2 for t in everything.samples[label])
            for label in (own, *marked)
        },
    )
    page = Page(render(Report("t", profile(), [race(gain=0.9)], blocking=[blocking, _alone(7)])))
    assert "Of persistent calls, the library's own stays in the only race" in page.text
    assert "Of blocking calls, collwise is clearly faster than the library's own in the only" in (
        page.text
    )
    statuses = [word for word in page.words if "chosen for" in word]
    assert sorted(statuses) == [
        "chosen for blocking calls",
        "library's own, chosen for blocking calls",  # where nothing else ran
        "library's own, chosen for persistent calls",
    ]


def _alone(nbytes: int) -> Race:
    return Race("broadcast", 8, nbytes, 0, {"library": (1.0, 1.0, 1.0)}, {})


def test_noise_is_said_loudly() -> None:
    advice = ("measure while nothing else runs",)
    page = _bare(profile(verdict="noisy: the two experiments disagree", advice=advice))
    assert "measurement: noisy" in page.words
    alarm = page.text.index("Do not trust these numbers")
    assert alarm < page.text.index("noisy: the two experiments disagree")
    assert page.text.index(advice[0]) < page.text.index("Results")
    assert page.text.count(advice[0]) == 1


def test_advice_of_a_stable_measurement() -> None:
    page = _bare(profile(advice=("give more time",)))
    assert "Do not trust" not in page.text
    assert "give more time" in page.text


def test_lambda_below_one_and_missing_values() -> None:
    odd = point(
        8,
        "nonblocking",
        lam=0.6,
        t0_interval_s=None,
        lam_interval=None,
        lam_experiments=(None, 0.6),
        disagreement=None,
        verdict="noisy: one experiment alone gives no λ",
    )
    page = _bare(profile([odd], medians=()))
    assert "0.600 used as 1" in page.text
    assert "Raw medians of the λ experiments" not in page.text


def test_a_race_without_samples_is_listed_all_the_same() -> None:
    empty = Race("broadcast", 2, 8, 0, {"library": (), "broadcast/flat": ()}, {}, dropped=9)
    page = _bare(races=[empty])
    assert "9 repetitions dropped" in page.text
    assert "broadcast/flat – – – 0" in page.text


def test_blocking_runs_stand_beside_their_race() -> None:
    blocking = Race(
        "broadcast", 8, 512, 0, {"library": (2.0,), "broadcast/binomial (blocking)": (1.0,)}, {}
    )
    alone = Race("broadcast", 8, 7, 0, {"library": (1.0,)}, {})
    page = Page(render(Report("t", profile(), [race()], blocking=[blocking, alone])))
    assert len([a for a in page.named("th") if a.get("scope") == "rowgroup"]) == 2
    assert "broadcast/binomial (blocking)" in page.text
    assert page.words.count("library") == 2
    assert "2.00 s" not in page.text  # the race's own median of the library stands


HOSTILE = "<script>alert('x')</script>\"&<b>$\\frac{</b>"


def test_everything_is_escaped() -> None:
    bad = Race(HOSTILE, 4, 8, 0, {"library": (1.0, 2.0), HOSTILE: (1.0, 1.0)}, {HOSTILE: 1.0})
    made = PROVENANCE.__class__(
        created=HOSTILE,
        collwise=HOSTILE,
        python=HOSTILE,
        mpi4py=HOSTILE,
        system=HOSTILE,
        hosts={HOSTILE: 1},
        command=HOSTILE,
        notes=(HOSTILE,),
    )
    measured = profile(
        [point(8, "nonblocking", verdict=HOSTILE)],
        verdict="noisy: " + HOSTILE,
        advice=(HOSTILE,),
        provenance=made,
    )
    timing, schedule = drawn("binomial", 3)
    shown = (*measured_pictures(measured, [bad]), *schedule_pictures(timing, schedule))
    titled = [Picture(HOSTILE, HOSTILE, picture.svg) for picture in shown]
    rows = [Row((HOSTILE, 1, 2.5), won=True)]
    text = render(
        Report(HOSTILE, measured, [bad], rows, titled, [HOSTILE], columns=[HOSTILE, "a", "b"])
    )
    page = Page(text)
    assert not page.named("script")
    assert not page.named("b")
    assert page.text.count("<script>alert(") >= 15


def test_the_same_report_twice_is_the_same_page() -> None:
    pages = [
        render(Report("t", profile(), RACES, ROWS, schedule_pictures(*drawn("binomial", 3))))
        for _ in range(2)
    ]
    assert pages[0] == pages[1]


def test_the_template_is_packaged() -> None:
    assert files("collwise.figures").joinpath("report_page.html.jinja").is_file()
