"""`s_to_p`, the paper's word, is understood wherever a user can write allgatherv."""

import json

import pytest
from tests.profiles.example import profile, race_result

import collwise as cw
from collwise.algorithms.registry import find, parse_label
from collwise.model.collective_names import shown_name
from collwise.profiles.profile import Profile

MACHINE = cw.Machine.postal(t0_s=1, lam=2)


def test_names_of_collectives_and_algorithms() -> None:
    assert shown_name("s_to_p") == "allgatherv"
    assert shown_name("s_to_p/ring") == "allgatherv/ring"
    assert shown_name("reduce/s_to_p") == "reduce/s_to_p"


@pytest.mark.parametrize("name", ["s_to_p", "S_to_P", "Allgather", "allgatherv", "MPI_Allgatherv"])
def test_plans(name: str) -> None:
    plan = cw.plan(name, ranks=8, nbytes=64, sources=[1, 5], machine=MACHINE)
    assert plan.algorithm.startswith("allgatherv/")
    assert str(plan).startswith("allgatherv of ")


def test_algorithms() -> None:
    ring = cw.ALGORITHMS["allgatherv/ring"]
    assert cw.ALGORITHMS["s_to_p/ring"] is ring
    assert "s_to_p/ring" in cw.ALGORITHMS
    assert "s_to_p/rings" not in cw.ALGORITHMS
    assert find("s_to_p/ring") is find("ring", "s_to_p") is ring
    assert parse_label("s_to_p/ring", "s_to_p")[0] is ring
    assert all(not name.startswith("s_to_p") for name in cw.ALGORITHMS)
    with pytest.raises(KeyError):
        cw.ALGORITHMS["s_to_p/rings"]


def test_profiles_of_earlier_versions() -> None:
    """They are read with the name of today, and written with it."""
    about = {"collective": "allgatherv", "algorithm": "allgatherv/ring", "sources": 3}
    made = profile(race_results=(race_result(512, settings={}, **about),))
    earlier = made.to_json().replace("allgatherv", "s_to_p")
    assert "s_to_p/ring" in earlier
    read = Profile.from_json(earlier)
    assert read == made
    assert "s_to_p" not in json.dumps(json.loads(read.to_json()))
