"""Rules from the races in a profile, and why others are none."""

import random
from typing import Any

import msgspec
import pytest

from collwise.errors import InvalidArgument, NoMPI
from collwise.formats import openmpi_rules
from collwise.formats.selection_rules import Installed, Named
from collwise.profiles.records import RacedOwn, RaceResult
from collwise.schedule.collectives import COLLECTIVES
from collwise.tuning import exported_rules
from collwise.tuning.exported_rules import Exported, exported, installed_library
from tests.planner.machines import race
from tests.profiles.example import PROVENANCE, profile

NAMES = ("binomial", "ring", "pipeline", "tree", "basic_linear", "pipelined_tree")
METHODS = [method for one in COLLECTIVES.values() for method in one.methods]
LIBRARY = Installed(
    "Open MPI 5.0.11",
    {
        method: {name: Named(1 + place, {"segment": 0}) for place, name in enumerate(NAMES)}
        for method in METHODS
    },
)


def own(name: str = "tree", low: float = 1.5, high: float = 1.7, **settings: int) -> RacedOwn:
    return RacedOwn(name=name, settings=settings, median_s=1e-5, speedup_low=low, speedup_high=high)


def won(nbytes: int, algorithm: str = "broadcast/library:tree", **changes: Any) -> RaceResult:
    return race(nbytes=nbytes, algorithm=algorithm, **changes)


def made(*races: RaceResult, **more: Any) -> Exported:
    return exported(profile(race_results=races), openmpi_rules.FORMAT, LIBRARY, **more)


def test_neighbours_with_one_winner_are_one_rule() -> None:
    lost = won(16384, decision="library")
    rules, unsaid = made(won(64), won(4096), lost, won(1 << 20, own=own("ring")))
    assert [(one.first, one.last, one.name, one.raced) for one in rules] == [
        (16, 8192, "tree", (64, 4096)),
        (262144, 4194304, "tree", (1 << 20,)),
    ]
    assert unsaid == ()
    assert rules[0].evidence == (
        "raced with 64 B: 1.80 to 2.20 times as fast as the default",
        "raced with 4 KiB: 1.80 to 2.20 times as fast as the default",
    )
    assert (rules[0].method, rules[0].ranks, rules[0].number) == ("Bcast", 4, 4)


@pytest.mark.parametrize("seed", range(20))
def test_no_size_that_was_raced_and_not_won_is_in_a_rule(seed: int) -> None:
    """And a rule reaches at most 4 times as far as what it is from, and not to calls of 0 bytes."""
    draw = random.Random(seed)
    races = {
        (nbytes, root): won(nbytes, root=root, decision=draw.choice(("collwise", "library")))
        for nbytes in draw.sample([0, *(2**power for power in range(16))], 9)
        for root in draw.sample(range(3), 2)
    }
    rules, _ = made(won(64, ranks=8), *races.values())
    on_four = [rule for rule in rules if rule.ranks == 4]
    for rule in on_four:
        assert 1 <= rule.first <= min(rule.raced) <= max(rule.raced) <= rule.last
        assert rule.first * 4 >= min(rule.raced)
        assert rule.last <= max(rule.raced) * 4
    for (nbytes, root), race_ in races.items():
        inside = [one for one in on_four if one.first <= nbytes <= one.last]
        assert race_.decision == "collwise" or not inside, (nbytes, root)


def test_a_rule_needs_a_win_with_every_raced_root() -> None:
    lost = won(512, root=1, decision="library")
    for races in ((won(512), lost), (lost, won(512))):
        (rule,), (line,) = made(won(64, ranks=8), *races)
        assert rule.ranks == 8
        assert line.endswith("with another root the default won")
    (rule,), _ = made(won(64), lost)
    assert (rule.first, rule.last) == (16, 181), "halfway"


def test_races_of_allgather_and_of_allgatherv_are_kept_apart() -> None:
    about = {"collective": "allgatherv", "sources": 4}
    lost = won(128, "allgatherv/library:ring", decision="library", method="Allgatherv", **about)
    (rule,), _ = made(won(64, "allgatherv/library:ring", method="Allgather", **about), lost)
    assert (rule.method, rule.first, rule.last) == ("Allgather", 16, 256)


def test_races_in_which_all_ranks_gave_make_rules_for_allgather() -> None:
    about = {"collective": "allgatherv", "sources": 4, "method": "Allgather"}
    (rule,), _ = made(won(64, "allgatherv/library:ring", **about))
    assert rule.method == "Allgather"
    assert "\n0  # Allgather\n" in openmpi_rules.FORMAT.bodies([rule], LIBRARY)[""]


def test_where_ours_won_the_librarys_fastest_counts_if_it_was_clearly_faster() -> None:
    (found,), _ = made(won(64, "broadcast/chain", own=own("ring", segment=8)))
    assert (found.name, found.changed, found.settings) == ("ring", {"segment": 8}, {"segment": 8})
    assert found.evidence == ("raced with 64 B: 1.50 to 1.70 times as fast as the default",)
    slow = won(64, "broadcast/binomial", own=own(low=0.9), ranks=8)
    (_,), (line,) = made(won(64), slow)
    assert line.endswith("binomial won, and nothing of the library's was clearly faster")
    (other,), _ = made(won(64, "broadcast/binomial", decision="library", own=own("ring")))
    assert other.name == "ring"


def test_where_none_of_the_librarys_was_raced_there_is_no_rule() -> None:
    (_,), (line,) = made(won(64), won(512, "broadcast/binomial", ranks=8))
    assert line.endswith("broadcast/binomial won, and nothing of the library's was raced")


def test_rules_say_where_several_nodes_had_several_ranks() -> None:
    for hosts, where, composed in (
        ((2, 2), "2x2", True), ((4,), "1x4", False), ((1,) * 4, "4x1", False),
        ((3, 1), "1x3 1x1", True),
    ):  # fmt: skip
        by_name = {f"h{number}": ranks for number, ranks in enumerate(hosts)}
        there = msgspec.structs.replace(PROVENANCE, hosts=by_name)
        raced = won(64, ranks_per_node=where)
        found = exported(
            profile(race_results=(raced,), provenance=there), openmpi_rules.FORMAT, LIBRARY
        )
        ((rule,), unsaid) = found
        assert (rule.composed, rule.ranks_per_node, unsaid) == (composed, where, ())
        assert (f"on 4 ranks ({where}):" in str(rule)) == composed


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"root": 1}, "the root is rank 1"),
        ({"collective": "allgatherv", "sources": 2}, "only 2 ranks have data"),
        ({"algorithm": "broadcast/library:gone"}, "the library does not offer it"),
        ({"settings": {"k": 3}}, "the file has no place for k"),
        (
            {"collective": "allreduce", "algorithm": "allreduce/library:ring"},
            "it is wrong for operators that do not commute",
        ),
    ],
)
def test_what_no_rule_says(changes: dict[str, Any], why: str) -> None:
    changes = {"algorithm": f"{changes.get('collective', 'broadcast')}/library:tree"} | changes
    odd, fine = won(512, **changes), won(64, ranks=8)
    rules, (line,) = made(odd, fine)
    assert [one.ranks for one in rules] == [8]
    assert line.endswith(f": {why}")
    with pytest.raises(InvalidArgument, match="1 race, of which none gives a rule; "):
        made(odd)


def test_races_of_other_forms_are_named_once() -> None:
    others = [won(n, form=form) for n in (8, 64) for form in ("persistent", "nonblocking")]
    (_,), unsaid = made(won(64), *others)
    words = "what won races of nonblocking calls", "what won races of persistent calls"
    assert unsaid == words


def test_operators_that_commute() -> None:
    ring = won(64, "allreduce/library:ring", collective="allreduce")
    (found,), unsaid = made(ring, commuting=True)
    assert (found.name, unsaid) == ("ring", ())


def test_other_placements_and_lost_races_say_nothing() -> None:
    lost = won(64, ranks=8, root=2, decision="library")
    (found,), unsaid = made(won(64, ranks_per_node="64x1"), lost, won(64, ranks=9))
    assert (found.ranks, len(unsaid)) == (9, 1)
    assert unsaid[0].endswith("the ranks lay otherwise on nodes (64x1)")
    with pytest.raises(InvalidArgument, match="the profile has 0 races"):
        made()


def test_a_library_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported_rules, "ask", lambda command: ([], "it crashed"))
    with pytest.raises(NoMPI, match="it crashed"):
        installed_library()
