"""Self-consistent performance guidelines, over a seeded random sample where formulas give times."""

from random import Random

import pytest

import collwise as cw
from collwise.schedule.collectives import COLLECTIVES
from tests.guidelines.guidelines import GUIDELINES, IN_MANY_CASES, on_the_grid
from tests.guidelines.random_problems import Asked, machine_of

RANKS = (2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 65)


def sample(seed: int, count: int) -> list[Asked]:
    """Problems without a collective: ranks, bytes, a postal machine or one of Hockney's."""
    random, found = Random(seed), []
    for _ in range(count):
        ranks = random.choice(RANKS)
        machine, _ = machine_of(random.choice(("postal", "hockney")), random, ranks)
        nbytes = -(-(1 << random.randrange(3, 21)) // (8 * ranks)) * 8 * ranks
        found.append(Asked("", ranks, machine, {"nbytes": nbytes}))
    return found


@pytest.mark.parametrize("guideline", GUIDELINES)
def test_nobody_can_do_better_by_hand(guideline: str) -> None:
    few = [asked for asked in sample(77, 6) if asked.ranks <= 17]
    violations = [*filter(None, map(GUIDELINES[guideline], few))]
    assert not violations, f"{len(violations)}: {violations[0]}"


@pytest.mark.no_cover
@pytest.mark.parametrize("guideline", GUIDELINES)
def test_nobody_can_do_better_by_hand_in_shared_memory(guideline: str) -> None:
    random = Random(31)
    for ranks in (2, 3, 8):
        t0_s, lam = random.randrange(1, 100), random.choice((1, 2, 4))
        inside = cw.Machine.postal(t0_s=t0_s, lam=lam)
        machine = cw.Machine.memory(inside, read=random.randrange(t0_s * lam + 1))
        nbytes = 8 * ranks * random.choice((1, 20, 300))
        assert GUIDELINES[guideline](Asked("", ranks, machine, {"nbytes": nbytes})) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("guideline", IN_MANY_CASES)
def test_nobody_can_do_better_by_hand_in_many_cases(guideline: str) -> None:
    assert not [*filter(None, map(IN_MANY_CASES[guideline], sample(2000, 300)))]


@pytest.mark.parametrize("most_ranks", [9, pytest.param(17, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_no_setting_by_hand_is_faster(collective: str, most_ranks: int) -> None:
    for asked in sample(5, 12):
        if asked.ranks <= most_ranks and asked.more["nbytes"] <= 1 << 15:
            assert on_the_grid(collective, asked) is None
