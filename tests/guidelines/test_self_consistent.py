"""Self-consistent performance guidelines, over a seeded random sample where formulas give times."""

from random import Random

import pytest

from tests.guidelines.guidelines import GUIDELINES, IN_MANY_CASES, ON_THE_GRID, Guideline
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


@pytest.mark.parametrize("guideline", GUIDELINES, ids=[one.__name__ for one in GUIDELINES])
def test_nobody_can_do_better_by_hand(guideline: Guideline) -> None:
    violations = [said for asked in sample(77, 2) if (said := guideline(asked)) is not None]
    assert not violations, f"{len(violations)}: {violations[0]}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(IN_MANY_CASES)))
def test_nobody_can_do_better_by_hand_in_many_cases(number: int) -> None:
    violations = filter(None, map(IN_MANY_CASES[number], sample(2000, 300)))
    assert not [*violations]


@pytest.mark.parametrize("guideline", ON_THE_GRID, ids=[one.__name__ for one in ON_THE_GRID])
def test_no_setting_by_hand_is_faster(guideline: Guideline) -> None:
    for asked in sample(5, 5):
        if asked.ranks <= 17 and asked.more["nbytes"] <= 1 << 15:
            assert guideline(asked) is None
