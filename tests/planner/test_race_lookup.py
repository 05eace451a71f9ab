"""What races have taught, applied to sizes that were not raced."""

import pickle
from fractions import Fraction
from math import isqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collwise.algorithms.registry import find
from collwise.errors import InvalidArgument
from collwise.measure.race import LIBRARY
from collwise.planner.choose import plan_for
from collwise.planner.race_lookup import (
    LEAST_GAIN_S,
    REACH,
    keeps_order,
    known_races,
    settled,
    sizes_decided,
    verdict,
)
from collwise.profiles.records import Form, RaceResult
from collwise.schedule.problem import Problem, Source
from tests.planner.machines import race
from tests.profiles.example import profile


def win(nbytes: int, algorithm: str = "", **changes: Any) -> RaceResult:
    return race(nbytes=nbytes, algorithm=algorithm or f"broadcast/won_{nbytes}", **changes)


def choice(
    wins: list[RaceResult],
    nbytes: int,
    collective: str = "broadcast",
    form: Form = "blocking",
    ranks: int = 4,
    sources: int = 0,
) -> str | None:
    """The algorithm that runs; None for the library's own."""
    shares = [nbytes - sources + 1, *[1] * (sources - 1)][:sources]
    gave = tuple(Source(rank, share) for rank, share in enumerate(shares))
    said = verdict(wins, Problem(collective, ranks, nbytes, sources=gave), form)
    assert str(said).startswith(
        "the library's own: " if said.algorithm == LIBRARY else f"{said.algorithm}: it won the race"
    )
    return None if said.algorithm == LIBRARY else said.algorithm


WINS = [win(8), win(512), win(4096), win(65536)]


def test_the_nearest_by_ratio() -> None:
    """512 and 4096 meet at 1448.15…; a race reaches REACH times as far, either way."""
    nearest = {8: 8, 1: None, 2: 8, 32: 8, 33: None, 127: None, 128: 512, 1448: 512, 1449: 4096}
    nearest |= {65536 * REACH: 65536, 65536 * REACH + 1: None, 0: None}
    for nbytes, raced in nearest.items():
        expected = None if raced is None else f"broadcast/won_{raced}"
        assert choice(WINS, nbytes) == choice(WINS[::-1], nbytes) == expected


def test_no_bytes_are_as_near_as_one() -> None:
    assert choice([win(0)], 0) == choice([win(0)], 4) == "broadcast/won_0"
    assert choice([win(0)], 5) is None
    assert choice([win(4)], 0) == "broadcast/won_4"
    assert choice([win(5)], 0) is None


def test_of_two_equally_near_ones_the_smaller() -> None:
    """The geometric mean is as far from both, exactly."""
    for small, large in ((1, 9), (1, 4), (2, 18), (5, 45), (49, 64)):
        middle = isqrt(small * large)
        for wins in ([win(small), win(large)], [win(large), win(small)]):
            assert choice(wins, middle) == f"broadcast/won_{small}"


def test_where_the_library_won_it_stays() -> None:
    """Even if ours won a little farther away."""
    wins = [win(512, decision="library"), win(1024)]
    assert choice(wins, 512) is choice(wins, 600) is None
    assert choice(wins, 1000) == "broadcast/won_1024"


def test_only_races_of_the_same_kind_count() -> None:
    assert choice(WINS, 8) == "broadcast/won_8"
    assert choice(WINS, 8, form="persistent") is None
    assert choice(WINS, 8, ranks=5) is None
    assert choice(WINS, 8, "reduce") is None
    assert choice([], 8) is None
    both = [win(8, form="persistent", algorithm="broadcast/chain"), *WINS]
    assert choice(both, 8, form="persistent") == "broadcast/chain"
    assert choice(both, 8) == "broadcast/won_8"


def test_nonblocking_calls_without_a_race_are_served_as_others() -> None:
    """Blocking ones, or persistent ones where nothing may wait; not by the library's others.

    What gains little is not worth the time of a planned call that nobody waits for.
    """
    problem = Problem("broadcast", 4, 512)
    won = win(512, "broadcast/flat", ours_s=LEAST_GAIN_S, library_s=2 * LEAST_GAIN_S)
    gains = {"ours_s": 1e-3, "library_s": 2e-3}
    persistent = win(512, "broadcast/chain", form="persistent", **gains)
    little = win(512, "broadcast/flat", ours_s=90e-6, library_s=180e-6)
    own = win(512, "broadcast/library:tree", library_s=9e-6)
    lost = win(512, form="nonblocking", decision="library")
    because = "it won the race of 512 bytes on 4 ranks, 2.00 times as fast as the library's own"
    served = verdict([won, persistent], problem, "nonblocking")
    assert served.race is won
    assert str(served) == (
        f"broadcast/flat: no race of nonblocking calls decides; of blocking ones {because}"
    )
    assert verdict([won, persistent], problem, "nonblocking", "persistent").race is persistent
    assert str(verdict([own], problem, "nonblocking")) == (
        f"{OWN}: no race of nonblocking calls decides, and broadcast/library:tree won one of"
        " blocking calls"
    )
    assert str(verdict([little], problem, "nonblocking")) == (
        f"{OWN}: no race of nonblocking calls decides, and broadcast/flat, which won one of"
        " blocking calls, saves less than 100 µs"
    )
    default = verdict([win(512, decision="library")], problem, "nonblocking")
    assert default.algorithm == LIBRARY
    assert default.race is None, "its times are those of blocking calls"
    assert verdict([own, won, lost], problem, "nonblocking").race is lost
    assert str(verdict([persistent], problem, "nonblocking")) == (
        f"{OWN}: nonblocking calls of broadcast were not raced on 4 ranks"
    )
    assert verdict([lost], problem, "blocking").race is None


# Between two sizes


def test_between_two_sizes_with_the_same_winner() -> None:
    """Beyond the last size nobody agrees."""
    same = [win(n, "broadcast/flat") for n in (8, 512)]
    others = [win(8), win(512)]
    library = [win(8, "broadcast/flat", decision="library"), win(512, "broadcast/flat")]
    for nbytes in (33, 64, 127, 300):
        assert choice(same, nbytes) == choice(same[::-1], nbytes) == "broadcast/flat"
        assert choice([*same, win(4096)], nbytes) == "broadcast/flat"
        for wins in (others, library):
            assert choice(wins, nbytes) == (None if 32 < nbytes < 128 else choice(wins, 512))
    assert choice(same, 512 * REACH) == "broadcast/flat"
    assert choice(same, 512 * REACH + 1) is choice(same, 1) is None


def test_between_two_sizes_with_as_many_sources() -> None:
    few = [gathers(n, 2, algorithm="allgatherv/ring") for n in (10, 1000)]
    assert gathered(few, 100, 2) == "allgatherv/ring"
    assert gathered(few, 100, 3) is None
    assert gathered([few[0], gathers(1000, 3, algorithm="allgatherv/ring")], 100, 2) is None


# Words

OWN = "the library's own"
LEARNED = "when a program learned while it ran, from its own calls of 512 bytes on 4 ranks"
WORDS: list[tuple[list[RaceResult], int, str]] = [
    (
        [win(512, "broadcast/flat", library_s=2.88e-6)],
        512,
        f"broadcast/flat: it won the race of 512 bytes on 4 ranks, 2.88 times as fast as {OWN}",
    ),
    (
        [win(512, "broadcast/flat", learned=True)],
        512,
        f"broadcast/flat: it was faster {LEARNED}, 2.00 times as fast as {OWN}",
    ),
    (
        [win(512, "broadcast/flat", learned=True, decision="library")],
        512,
        f"{OWN}: nothing was clearly faster {LEARNED}",
    ),
    (
        [win(8, "broadcast/flat"), win(65536, "broadcast/flat", library_s=3e-6)],
        512,
        "broadcast/flat: it won the races of 8 bytes and of 65,536 bytes on 4 ranks, 2.00 and 3.00"
        f" times as fast as {OWN}",
    ),
    (
        [win(64, decision="library")],
        64,
        f"{OWN}: nothing was clearly faster in the race of 64 bytes on 4 ranks",
    ),
    (
        [win(8), win(512)],
        64,
        f"{OWN}: no race of blocking calls of broadcast on 4 ranks is near enough to 64"
        " bytes (raced: 8, 512 bytes; a race counts for up to 4 times as many or as few, and"
        " between two sizes with the same winner)",
    ),
    (
        [win(64, ranks=2), win(64, ranks=8)],
        64,
        f"{OWN}: blocking calls of broadcast were not raced on 4 ranks (but on 2, 8)",
    ),
    ([], 64, f"{OWN}: blocking calls of broadcast were not raced on 4 ranks"),
]


@pytest.mark.parametrize(("wins", "nbytes", "words"), WORDS)
def test_why(wins: list[RaceResult], nbytes: int, words: str) -> None:
    assert str(verdict(wins, Problem("broadcast", 4, nbytes), "blocking")) == words


def test_an_operator_that_needs_another_order() -> None:
    """A census won with integers does not serve a sum that rounds."""
    census = win(64, "allreduce/census_delay_send", collective="allreduce")
    rounding = Problem("allreduce", 4, 64, itemsize=8, order="same")
    assert find("allreduce/census_delay_send").order(rounding) == "any"
    assert str(verdict([census], rounding, "blocking")).startswith(
        "the library's own: allreduce/census_delay_send combines in an order that is not legal"
        " here, though it won the race of 64 bytes"
    )
    exact = Problem("allreduce", 4, 64, itemsize=8, order="any")
    won = str(verdict([census], exact, "blocking"))
    assert won.startswith("allreduce/census_delay_send: it won")


def test_a_plan_after_races() -> None:
    """Its choice, its candidates and its text say the same as the verdict."""
    problem, machine = Problem("broadcast", 4, 512), profile().machine
    estimate = plan_for(problem, machine)
    slow = estimate.candidates[-1]
    won = verdict([win(512, slow.name)], problem, "blocking")
    made = settled(estimate, won)
    assert (made.choice.name, made.choice.verdict) == (slow.name, f"chosen: {won.because}")
    assert made.candidate(slow.label) == made.choice
    assert made.candidates[0].verdict == "the least predicted time, but a race decided"
    lost = verdict([win(512, decision="library")], problem, "blocking")
    stays = settled(estimate, lost)
    assert stays.algorithm == LIBRARY
    assert "choice       library\n" in str(stays)
    assert f"chosen: {lost.because}" in str(stays)
    assert settled(estimate, verdict([], problem, "blocking")) is estimate
    unknown = verdict([win(512, "broadcast/gone")], problem, "blocking")
    assert settled(estimate, unknown) is estimate


@given(
    st.dictionaries(st.sampled_from([0, 3, 8, 20, 64, 100, 999, 4096]), st.sampled_from("abc")),
)
def test_the_sizes_that_races_decide_are_those_of_verdicts(winners: dict[int, str]) -> None:
    assert sizes_decided({0: "a", 1: "b"}) == [(0, 4, "a")]
    races = [win(nbytes, f"broadcast/{name}") for nbytes, name in winners.items()]
    ranges = sizes_decided(winners)
    ends = [n + more for first, last, _ in ranges for n in (first, last) for more in (-1, 0, 1)]
    for nbytes in {*ends, *range(70), 20000} - {-1}:
        found = [name for first, last, name in ranges if first <= nbytes <= last]
        expected = choice(races, nbytes)
        assert found == ([] if expected is None else [expected.removeprefix("broadcast/")])


def test_the_librarys_own_algorithms() -> None:
    """They serve as ours do, but where vectors must be combined in the order of the ranks."""
    tree = win(
        512, "allreduce/library:tree", collective="allreduce", settings={"k": "4"}, ours_s=1e-6
    )
    known = known_races(profile(race_results=(tree,)), 4)
    assert known == (tree,)
    exact = Problem("allreduce", 4, 512, itemsize=8, order="any")
    won = verdict(known, exact, "blocking")
    assert str(won).startswith("allreduce/library:tree: it won the race of 512 bytes")
    made = settled(plan_for(exact, profile().machine), won)
    assert (made.algorithm, made.settings) == ("allreduce/library:tree", {"k": "4"})
    assert "choice       allreduce/library:tree(k=4)\nmeasured" in str(made)
    assert made.level_times == {}
    with pytest.raises(InvalidArgument, match="nobody else knows"):
        made.schedule  # noqa: B018
    in_order = Problem("allreduce", 4, 512, itemsize=8, order="rank")
    assert verdict(known, in_order, "blocking").algorithm == LIBRARY
    assert keeps_order("broadcast/library:tree", Problem("broadcast", 4, 8))


def test_races_of_algorithms_that_are_no_more() -> None:
    learned = profile(race_results=(win(8, ranks=5), win(64, "broadcast/flat", ranks=5)))
    assert [race.nbytes for race in known_races(learned, 5)] == [64]


def gathered(wins: list[RaceResult], nbytes: int, sources: int) -> str | None:
    return choice(wins, nbytes, "allgatherv", "blocking", 64, sources)


def gathers(nbytes: int, sources: int, algorithm: str = "", **changes: Any) -> RaceResult:
    name = algorithm or f"allgatherv/won_{nbytes}_{sources}"
    return win(nbytes, name, collective="allgatherv", ranks=64, sources=sources, **changes)


def test_the_number_of_sources_counts_as_much_as_the_bytes() -> None:
    wins = [gathers(1000, 2), gathers(1000, 16), gathers(4000, 8)]
    assert gathered(wins, 1000, 2) == gathered(wins, 2000, 1) == "allgatherv/won_1000_2"
    assert gathered(wins, 1000, 12) == "allgatherv/won_1000_16"
    assert gathered(wins, 3000, 10) == "allgatherv/won_4000_8"
    assert gathered(wins, 1000, 5) == "allgatherv/won_1000_2"  # 5/2 < 16/5
    assert (
        gathered(wins, 16_000, 2) == "allgatherv/won_4000_8"
    )  # 4 · 4; 1000 bytes are out of reach


def test_both_have_to_be_within_reach() -> None:
    wins = [gathers(1000, 4)]
    assert gathered(wins, 1000 * REACH, 4 * REACH) == "allgatherv/won_1000_4"
    assert gathered(wins, 1000, 4 * REACH + 1) is None
    assert gathered(wins, 1000 * REACH + 1, 4) is None
    assert gathered([gathers(1000, REACH)], 1000, 1) is not None
    assert gathered([gathers(1000, REACH + 1)], 1000, 1) is None


def test_of_equally_near_ones_the_smaller_then_that_of_fewer_sources() -> None:
    for wins in (
        [gathers(500, 8), gathers(1000, 16), gathers(1000, 4)],
        [gathers(1000, 4), gathers(1000, 16), gathers(500, 8)],
    ):
        assert gathered(wins, 1000, 8) == "allgatherv/won_500_8"
        assert gathered([w for w in wins if w.nbytes > 500], 1000, 8) == "allgatherv/won_1000_4"


def test_some_who_give_and_all_who_give_are_two_things() -> None:
    wins = [gathers(1000, 32), gathers(1000, 63)]
    assert gathered(wins, 1000, 64) is None
    wins.append(gathers(1000, 64))
    assert gathered(wins, 1000, 64) == "allgatherv/won_1000_64"
    assert gathered(wins, 1000, 62) == "allgatherv/won_1000_63"
    assert gathered(wins[-1:], 1000, 63) is None


def test_where_the_library_won_with_as_many_sources_it_stays() -> None:
    wins = [gathers(1000, 2), gathers(1000, 8, decision="library")]
    assert gathered(wins, 1000, 7) is None
    assert gathered(wins, 1000, 3) == "allgatherv/won_1000_2"


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
