"""What races have taught, applied to sizes that were not raced."""

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.planner.race_lookup import REACH, learned_choice
from collwise.profiles.records import RaceResult


def win(nbytes: int, algorithm: str = "", **changes: Any) -> RaceResult:
    fields: dict[str, Any] = {
        "collective": "broadcast",
        "form": "blocking",
        "ranks": 4,
        "nbytes": nbytes,
        "root": 0,
        "algorithm": algorithm or f"broadcast/won_{nbytes}",
        "settings": {},
        "ours_s": 1e-6,
        "library_s": 2e-6,
        "speedup_low": 1.8,
        "speedup_high": 2.2,
        "decision": "collwise",
    }
    return RaceResult(**(fields | changes))


def choice(wins: list[RaceResult], nbytes: int) -> str | None:
    return learned_choice(wins, "broadcast", "blocking", 4, nbytes)


WINS = [win(8), win(512), win(4096), win(65536)]


@pytest.mark.parametrize(
    ("nbytes", "nearest"),
    [
        (8, 8),
        (1, None),
        (2, 8),
        (32, 8),
        (33, None),
        (127, None),
        (128, 512),
        (1448, 512),
        (1449, 4096),
        (65536 * REACH, 65536),
        (65536 * REACH + 1, None),
        (0, None),
    ],
)
def test_the_nearest_by_ratio(nbytes: int, nearest: int | None) -> None:
    """512 and 4096 meet at 1448.15…; a race reaches REACH times as far, either way."""
    expected = None if nearest is None else f"broadcast/won_{nearest}"
    assert choice(WINS, nbytes) == expected
    assert choice(WINS[::-1], nbytes) == expected


def test_no_bytes_are_as_near_as_one() -> None:
    assert choice([win(0)], 0) == choice([win(0)], 4) == "broadcast/won_0"
    assert choice([win(0)], 5) is None
    assert choice([win(4)], 0) == "broadcast/won_4"
    assert choice([win(5)], 0) is None


@pytest.mark.parametrize(("small", "large"), [(1, 9), (1, 4), (2, 18), (5, 45), (49, 64)])
def test_of_two_equally_near_ones_the_smaller(small: int, large: int) -> None:
    """The geometric mean is as far from both, exactly."""
    middle = round((small * large) ** 0.5)
    assert middle**2 == small * large
    for wins in ([win(small), win(large)], [win(large), win(small)]):
        assert choice(wins, middle) == f"broadcast/won_{small}"


def test_where_the_library_won_it_stays() -> None:
    """Even if ours won a little farther away."""
    wins = [win(512, decision="library"), win(1024)]
    assert choice(wins, 512) is choice(wins, 600) is None
    assert choice(wins, 1000) == "broadcast/won_1024"


def test_only_races_of_the_same_kind_count() -> None:
    assert learned_choice(WINS, "broadcast", "blocking", 4, 8) == "broadcast/won_8"
    assert learned_choice(WINS, "broadcast", "persistent", 4, 8) is None
    assert learned_choice(WINS, "broadcast", "blocking", 5, 8) is None
    assert learned_choice(WINS, "reduce", "blocking", 4, 8) is None
    assert learned_choice([], "broadcast", "blocking", 4, 8) is None
    both = [win(8, form="persistent", algorithm="broadcast/chain"), *WINS]
    assert learned_choice(both, "broadcast", "persistent", 4, 8) == "broadcast/chain"
    assert learned_choice(both, "broadcast", "blocking", 4, 8) == "broadcast/won_8"


def gathered(wins: list[RaceResult], nbytes: int, sources: int) -> str | None:
    return learned_choice(wins, "s_to_p", "blocking", 64, nbytes, sources)


def gathers(nbytes: int, sources: int, **changes: Any) -> RaceResult:
    name = f"s_to_p/won_{nbytes}_{sources}"
    return win(nbytes, name, collective="s_to_p", ranks=64, sources=sources, **changes)


def test_the_number_of_sources_counts_as_much_as_the_bytes() -> None:
    wins = [gathers(1000, 2), gathers(1000, 16), gathers(4000, 8)]
    assert gathered(wins, 1000, 2) == gathered(wins, 2000, 1) == "s_to_p/won_1000_2"
    assert gathered(wins, 1000, 12) == "s_to_p/won_1000_16"
    assert gathered(wins, 3000, 10) == "s_to_p/won_4000_8"
    assert gathered(wins, 1000, 5) == "s_to_p/won_1000_2"  # 5/2 < 16/5
    assert gathered(wins, 16_000, 2) == "s_to_p/won_4000_8"  # 4 · 4; 1000 bytes are out of reach


def test_both_have_to_be_within_reach() -> None:
    wins = [gathers(1000, 4)]
    assert gathered(wins, 1000 * REACH, 4 * REACH) == "s_to_p/won_1000_4"
    assert gathered(wins, 1000, 4 * REACH + 1) is None
    assert gathered(wins, 1000 * REACH + 1, 4) is None
    assert gathered([gathers(1000, REACH)], 1000, 1) is not None
    assert gathered([gathers(1000, REACH + 1)], 1000, 1) is None


def test_of_equally_near_ones_the_smaller_then_that_of_fewer_sources() -> None:
    for wins in (
        [gathers(500, 8), gathers(1000, 16), gathers(1000, 4)],
        [gathers(1000, 4), gathers(1000, 16), gathers(500, 8)],
    ):
        assert gathered(wins, 1000, 8) == "s_to_p/won_500_8"
        assert gathered([w for w in wins if w.nbytes > 500], 1000, 8) == "s_to_p/won_1000_4"


def test_some_who_give_and_all_who_give_are_two_things() -> None:
    wins = [gathers(1000, 32), gathers(1000, 63)]
    assert gathered(wins, 1000, 64) is None
    wins.append(gathers(1000, 64))
    assert gathered(wins, 1000, 64) == "s_to_p/won_1000_64"
    assert gathered(wins, 1000, 62) == "s_to_p/won_1000_63"
    assert gathered(wins[-1:], 1000, 63) is None


def test_where_the_library_won_with_as_many_sources_it_stays() -> None:
    wins = [gathers(1000, 2), gathers(1000, 8, decision="library")]
    assert gathered(wins, 1000, 7) is None
    assert gathered(wins, 1000, 3) == "s_to_p/won_1000_2"


sizes = st.integers(0, 10**6)


@given(st.sets(sizes, max_size=8), sizes)
def test_equal_on_all_ranks(raced: set[int], nbytes: int) -> None:
    """Whatever the order, and after a journey; and what was chosen is the nearest there is."""
    wins = [win(n) for n in sorted(raced)]
    found = choice(wins, nbytes)
    assert choice(wins[::-1], nbytes) == choice(pickle.loads(pickle.dumps(wins)), nbytes) == found

    def ratio(n: int) -> Fraction:
        return max(Fraction(max(n, 1), max(nbytes, 1)), Fraction(max(nbytes, 1), max(n, 1)))

    near = {n for n in raced if ratio(n) <= REACH}
    if found is None:
        assert not near
    else:
        chosen = int(found.rpartition("_")[2])
        assert chosen in near
        assert all((ratio(chosen), chosen) <= (ratio(n), n) for n in near)
