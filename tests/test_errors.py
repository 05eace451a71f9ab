"""Errors: what was asked, what was seen, what to do; near names; exit codes."""

import pytest

from collwise import errors
from collwise.errors import CollwiseError, UnknownName

CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, CollwiseError)]


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_says_three_things(error: type[CollwiseError]) -> None:
    e = error("a broadcast from root 9", "there are 4 ranks", "give a root from 0 to 3")
    assert str(e) == "a broadcast from root 9: there are 4 ranks; give a root from 0 to 3"
    assert (e.asked, e.seen, e.remedy) == e.args
    assert e.exit_code in (1, 2)
    assert error.__doc__


def test_whose_fault_it_is() -> None:
    """2: the request is wrong.  1: a check failed or a result is wrong."""
    assert {c.__name__: c.exit_code for c in CLASSES if c.exit_code == 1} == {
        "InvalidSchedule": 1,
        "WrongResult": 1,
        "BrokenCommunicator": 1,
        "LabFailed": 1,
        "RanksLost": 1,
    }


KNOWN = ["broadcast/chain", "broadcast/chain_segmented", "broadcast/binomial", "reduce/binomial"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("broadcast/binominal", ["broadcast/binomial", "reduce/binomial"]),
        ("binominal", ["reduce/binomial", "broadcast/binomial"]),
        ("chian", ["broadcast/chain"]),
        ("broadcast/chain_segment", ["broadcast/chain_segmented", "broadcast/chain"]),
        ("allreduce/chain", ["broadcast/chain", "broadcast/chain_segmented"]),
    ],
)
def test_near_names(name: str, near: list[str]) -> None:
    error = UnknownName.of("algorithm", name, reversed(KNOWN))
    assert error.asked == f"algorithm {name!r}"
    assert error.seen == "there is none"
    said, names = error.remedy[:13], error.remedy[13:-1].split(", ")
    assert said == "did you mean "
    assert error.remedy.endswith("?")
    assert set(names) >= set(near)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("add", "sum"),
        ("Maximum", "max"),
        ("MPI_PRODUCT", "prod"),
        ("MPI.SUM", "sum"),
        ("bit_wise", "bitwise"),
    ],
)
def test_what_others_call_something(name: str, ours: str) -> None:
    error = UnknownName.of("operator", name, ["sum", "max", "prod", "bitwise"])
    assert str(error) == f"operator {name!r}: there is none; write {ours}, as it is called here"
    assert "as it is called" not in str(UnknownName.of("topology", name, ["mesh", "torus"]))


@pytest.mark.parametrize(
    ("name", "told"),
    [(None, "None"), (3, "3"), (True, "True"), ([], "a list"), (object(), "a object")],
)
def test_what_is_no_name(name: object, told: str) -> None:
    """No address of an object, which would differ between ranks."""
    error = UnknownName.of("order", name, ["same", "any"])
    assert str(error) == f"order ({told}): there is none; known: any, same"


def test_no_near_name() -> None:
    error = UnknownName.of("algorithm", "warp", KNOWN)
    assert error.remedy == "known: " + ", ".join(sorted(KNOWN))
