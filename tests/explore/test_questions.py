"""What the page computes, without a browser."""

import re
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec

import pytest

import collwise as cw
from collwise.cli import collwise
from collwise.explore.questions import LAMS, POSTAL, Question, choices, embedded
from collwise.figures.style import THEME
from collwise.schedule.collectives import COLLECTIVES
from tests.figures.examples import xs, ys

Capture = pytest.CaptureFixture[str]
QUESTIONS = (
    Question(ranks=13),
    Question("allgatherv", ranks=12, machine="paragon", distribution="cross", sources=5),
    Question("reduce", ranks=6, machine="ipsc860"),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.collective)
def test_what_is_drawn_is_what_is_planned(question: Question) -> None:
    machine, topology = question.network
    assert question.trace.completion == question.plan.choice.predicted
    assert question.plan.bound.time <= min(c.predicted for c in question.best.values())
    assert next(iter(question.best)) == question.plan.choice.name
    assert question.plan.machine == machine
    assert question.plan.topology == topology
    *schedule, bars, over = question.figures().values()
    assert len(schedule) == (1 if question.collective == "reduce" else 2)
    names = [label.get_text() for label in bars.axes[0].get_yticklabels()]
    assert [f"{question.collective}/{name}" for name in names] == [*question.best]
    *curves, bound = over.axes[0].lines[:-1]  # the last one marks where we are
    least = dict(zip(xs(bound), ys(bound), strict=True))
    for curve in curves:  # of what is hopeless somewhere, the time there is not known
        assert all(y >= least[x] for x, y in zip(xs(curve), ys(curve), strict=True))


def test_another_algorithm_is_drawn_and_compared() -> None:
    question = Question(algorithm="broadcast/binomial")
    assert question.trace.completion == 8  # λ = 2, 16 ranks: 4 rounds
    assert question.sentence == (
        "broadcast/binomial completes after 8 t0, 1.14 times the lower bound."
    )
    assert Question().sentence.endswith("after 7 t0, and no schedule can be faster.")
    (curve, *_) = question.figures()["Over λ"].axes[0].lines
    assert xs(curve) == [float(lam) for lam in LAMS]
    assert ys(curve) == [4 * lam for lam in xs(curve)]


def test_a_choice_of_another_collective_is_forgotten() -> None:
    assert replace(Question("reduce", ranks=4), algorithm="broadcast/chain").shown.name.startswith(
        "reduce/"
    )


def test_pictures_on_one_page() -> None:
    """They bring their colours: the page has a `--muted` of its own, in which lines are hardly
    seen.  They share no identifiers: a glyph of one would be drawn in another."""
    texts = [embedded(figure) for figure in Question(ranks=5).figures().values()]
    for text in texts:
        assert text.startswith("<div style=")
        for name in set(re.findall(r"var\(--(\w+),", text)):
            assert f"--{name}: {THEME[name][0]}" in text
    names = [name for text in texts for name in re.findall(r' id="([^"]+)"', text)]
    assert len(names) == len(set(names)) > 0


def test_sources_are_no_more_than_ranks() -> None:
    assert Question("allgatherv", ranks=3, sources=9).source_ranks == (0, 1, 2)
    assert Question(sources=9).source_ranks is None


@pytest.mark.parametrize("machine", choices()["machine"])
def test_every_machine_and_menu(machine: str) -> None:
    question = Question(ranks=6, machine=machine)
    assert question.is_postal == (machine == POSTAL)
    assert question.plan.choice.predicted > 0
    assert [*choices()["collective"]] == [*COLLECTIVES]
    assert Question(lam=Fraction(5, 2)).time(Fraction(5, 2)) == "2.5 t0"


@pytest.mark.parametrize("question", QUESTIONS[:2], ids=lambda q: q.collective)
def test_the_command_plans_the_same(question: Question, capsys: Capture) -> None:
    collwise.main(question.command.split()[1:-2], standalone_mode=False)
    assert question.shown.label in capsys.readouterr().out


@pytest.mark.skipif(find_spec("marimo") is not None, reason="the extra is installed")
def test_without_the_extra_one_is_told_what_to_install() -> None:
    from collwise.explore.serving import serve

    with pytest.raises(cw.errors.InvalidArgument, match=r"pip install 'collwise\[explore\]'"):
        serve(0, False, print)
