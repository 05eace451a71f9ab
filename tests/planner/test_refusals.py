"""What a planner refuses, and the words it has for it."""

from collections.abc import Callable
from typing import Any

import pytest

from collwise.algorithms.registry import algorithms_for
from collwise.errors import CollwiseError, InvalidArgument, UnknownName
from collwise.model.topology import Complete, Mesh
from collwise.planner.choose import plan
from collwise.schedule.collectives import COLLECTIVES
from tests.planner.machines import HOCKNEY, POSTAL
from tests.profiles.example import profile


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"root": 4}, InvalidArgument, "broadcast from root 4: it has 4 ranks; give a root"),
        ({"machine": None}, InvalidArgument, "the machine is None; give a collwise.Machine"),
        ({"machine": "paragon"}, InvalidArgument, r"is 'paragon'; .*presets\[name\].machine"),
        ({"machine": [1.5, 2]}, InvalidArgument, "the machine is a list; "),
        ({"machine": profile()}, InvalidArgument, "is a Profile; .*such as profile.machine"),
        ({"algorithm": "binominal"}, UnknownName, "algorithm 'binominal'.*did you mean broadcast/"),
        ({"algorithm": ""}, UnknownName, "algorithm ''.*known: broadcast/"),
        ({"collective": "braodcast"}, UnknownName, "did you mean broadcast"),
        ({"collective": "sort"}, UnknownName, "collective 'sort': there is none; known: "),
        ({"sources": [0]}, InvalidArgument, "it has no sources, and no mesh; leave so"),
        ({"topology": Mesh(3, 3)}, InvalidArgument, "there are 4 ranks, and a mesh of 3 × 3"),
        ({"topology": Complete(9)}, InvalidArgument, "a complete graph of 9 has 9 nodes; give a"),
    ],
)
def test_errors(changes: dict[str, Any], error: type[CollwiseError], text: str) -> None:
    good: dict[str, Any] = {"collective": "broadcast", "ranks": 4, "nbytes": 8, "machine": POSTAL}
    plan(**good)
    with pytest.raises(error, match=text) as caught:
        plan(**(good | changes))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("collective", ["broadcast", "allgatherv"])
@pytest.mark.parametrize(
    "wish", [{"op": "sum"}, {"op": "rubbish"}, {"dtype": "int32"}, {"order": "any"}]
)
def test_wishes_about_combining_where_nothing_is_combined(
    collective: str, wish: dict[str, Any]
) -> None:
    sources = {"sources": [1]} if collective == "allgatherv" else {}
    good: dict[str, Any] = {"ranks": 4, "nbytes": 8, "machine": POSTAL, **sources}
    plan(collective, **good, op=None, dtype=None, order=None)
    with pytest.raises(InvalidArgument) as caught:
        plan(collective, **good, **wish)
    (name,) = wish
    assert str(caught.value) == (
        f"{collective} with {name}: it is for reduce, allreduce and reduce_scatter_block only;"
        f" leave out {name}"
    )


def test_what_nobody_says_about_combining() -> None:
    good: dict[str, Any] = {"ranks": 4, "nbytes": 64, "machine": POSTAL}
    for collective in (c.name for c in COLLECTIVES.values() if c.combines):
        told = plan(collective, **good, op="sum", dtype="float64")
        assert plan(collective, **good) == told


@pytest.mark.parametrize(
    ("name", "ranks", "nbytes"),
    [("scatter_ring", 2, 1000), ("scatter_allgather", 8, 5), ("chain_segmented", 4, 1)],
)
def test_an_algorithm_that_does_not_apply(name: str, ranks: int, nbytes: int) -> None:
    """Asked for by name it is an error; among others it is listed with the reason."""
    with pytest.raises(InvalidArgument) as caught:
        plan("broadcast", ranks=ranks, nbytes=nbytes, machine=HOCKNEY, algorithm=name)
    assert caught.value.asked == f"broadcast/{name} for {nbytes} bytes on {ranks} ranks"
    assert caught.value.remedy == "choose another algorithm"
    among_others = plan("broadcast", ranks=ranks, nbytes=nbytes, machine=HOCKNEY)
    assert among_others.excluded[f"broadcast/{name}"] == caught.value.seen


@pytest.mark.parametrize("change", [lambda n: float(n), lambda n: True if n == 1 else float(n)])
def test_a_cached_plan_excuses_nothing(change: Callable[[int], Any]) -> None:
    """8.0 equals 8, but is refused before and after 8 was planned."""
    for ranks, nbytes, root in ((8, 16, 1), (2, 1, 1)):
        plan("broadcast", ranks=ranks, nbytes=nbytes, root=root, machine=POSTAL)
        for odd in (
            {"ranks": change(ranks), "nbytes": nbytes, "root": root},
            {"ranks": ranks, "nbytes": change(nbytes), "root": root},
            {"ranks": ranks, "nbytes": nbytes, "root": change(root)},
        ):
            with pytest.raises(InvalidArgument, match="give an integer"):
                plan("broadcast", machine=POSTAL, **odd)


@pytest.mark.no_cover
def test_something_applies_everywhere() -> None:
    assert len(algorithms_for("broadcast")) > 1
    for ranks in (1, 2, 3, 500):
        for nbytes in (0, 1, 2, 1 << 31):
            assert plan("broadcast", ranks=ranks, nbytes=nbytes, machine=HOCKNEY).candidates
