"""The plan after a race: who is chosen, and what is said of the others."""

from fractions import Fraction

import pytest

from collwise.errors import UnknownName
from collwise.measure.race import LIBRARY, LIBRARY_PERSISTENT
from collwise.planner.choose import decided, plan
from collwise.planner.plans import Candidate, Plan
from tests.planner.machines import MEASURED

CLEAR = "chosen: nothing beat it clearly"


@pytest.fixture
def estimate() -> Plan:
    return plan("broadcast", ranks=9, nbytes=2000, machine=MEASURED, root=4)


def raced(estimate: Plan, *medians_s: float) -> dict[str, float]:
    """Medians of the first candidates."""
    labels = [c.label for c in estimate.candidates]
    return dict(zip(labels, medians_s, strict=False))


def test_ours_wins(estimate: Plan) -> None:
    """The second of the estimate: it becomes the choice, with its schedule."""
    medians = {LIBRARY: 9e-6, **raced(estimate, 7e-6, 5e-6, 9.5e-6)}
    first, second, third, *others = estimate.candidates
    made = decided(estimate, medians, second.label)
    assert made.choice.label == second.label
    assert made.schedule.algorithm == second.label
    assert made.choice.verdict == "chosen: the fastest measured, clearly ahead of the library"
    assert made.choice.measured_s == 5e-6
    assert made.choice.predicted == second.predicted
    assert [c.label for c in made.candidates] == [c.label for c in estimate.candidates]
    assert made.choice in made.candidates
    assert made.candidate(first.label).verdict == "raced; not the fastest"
    assert made.candidate(first.label).measured_s == 7e-6
    assert made.candidate(third.label).verdict == "raced; not the fastest"
    for other in others:
        found = made.candidate(other.label)
        assert found.verdict == f"not raced; {other.verdict}"
        assert found.measured_s is None
    assert sum(c.verdict.startswith("chosen") for c in made.candidates) == 1
    assert (made.problem, made.machine, made.bound) == (
        estimate.problem,
        estimate.machine,
        estimate.bound,
    )


@pytest.mark.parametrize("library", [LIBRARY, LIBRARY_PERSISTENT])
def test_the_library_wins(estimate: Plan, library: str) -> None:
    """By either of its forms; it goes by one name."""
    medians = {LIBRARY: 3e-6, LIBRARY_PERSISTENT: 2e-6, **raced(estimate, 7e-6, 5e-6)}
    made = decided(estimate, medians, library, library)
    own = medians[library]
    assert made.choice == Candidate(LIBRARY, {}, Fraction(str(own)), CLEAR, own)
    assert (made.algorithm, made.settings, made.predicted_s) == (LIBRARY, {}, own)
    assert made.candidates[0] is made.choice
    assert [c.label for c in made.candidates[1:]] == [c.label for c in estimate.candidates]
    assert [c.verdict for c in made.candidates[1:3]] == ["raced; not the fastest"] * 2
    assert all(c.verdict.startswith("not raced; ") for c in made.candidates[3:])


def test_a_tie_is_the_librarys(estimate: Plan) -> None:
    """Whoever was ahead, but not clearly, is told so."""
    medians = {LIBRARY: 5e-6, **raced(estimate, 4.9e-6, 5e-6, 5.1e-6)}
    made = decided(estimate, medians, LIBRARY)
    assert made.choice.verdict == CLEAR
    assert [c.verdict for c in made.candidates[1:4]] == [
        "raced; not clearly ahead of the library",
        "raced; not the fastest",
        "raced; not the fastest",
    ]


def test_an_unknown_winner(estimate: Plan) -> None:
    with pytest.raises(UnknownName, match="broadcast/quicksort"):
        decided(estimate, {LIBRARY: 1e-6}, "broadcast/quicksort")


def test_the_estimate_stays_as_it_was(estimate: Plan) -> None:
    before = str(estimate)
    decided(estimate, {LIBRARY: 1e-6, **raced(estimate, 7e-6)}, LIBRARY)
    assert str(estimate) == before
    assert estimate.choice.measured_s is None
