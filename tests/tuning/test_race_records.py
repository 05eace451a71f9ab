"""Races that were written into documents and are read again."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collwise.errors import InvalidArgument
from collwise.measure.race import ALWAYS_RACED
from collwise.profiles.records import FORMS
from collwise.report.tuning_tables import race_document, tuning_document
from collwise.tuning.outcomes import Outcome, Task
from collwise.tuning.race_records import RaceRecord, Sweep, read_record, read_sweep
from tests.tuning.examples import PROFILE, outcome, session


def cell(made: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(race_document(made), enc_hook=float))
    return found


def sweep(*outcomes: Outcome, **more: Any) -> Sweep:
    settings = {"within": 0.05, "order": (0, 1, 2, 3, 4), **more}
    cells = tuple(map(cell, outcomes))
    return Sweep(
        fingerprint=PROFILE.fingerprint, provenance=PROFILE.provenance, cells=cells, **settings
    )


def has(made: Sweep, task: Task) -> bool:
    return any(race.is_about(task) for race in made.races)


def test_a_sweep_is_read_as_it_was_saved(tmp_path: Path) -> None:
    made = sweep(outcome(8), outcome(4096), outcome(40, sources=(0, 2)))
    made.save(path := tmp_path / "it.json")
    assert read_sweep(path) == made
    assert read_record(path).races == made.races
    assert has(made, outcome(8).task)
    assert has(made, outcome(40, sources=(0, 2)).task)
    assert not has(made, outcome(40, sources=(0, 3)).task)
    assert not has(made, outcome(16).task)
    race, decided = made.races[1], outcome(4096).decisions[0]
    assert race.forms["blocking"].library_s == decided.library.middle
    assert race.forms["blocking"].uncertainty == pytest.approx(
        max(decided.library.uncertainty, decided.measured.uncertainty)
    )
    assert race.repetitions == 30


def test_the_verdict_of_a_sweep() -> None:
    calm, wild = outcome(8, noise=0.001), outcome(4096, noise=0.5)
    assert sweep(calm).verdict("blocking") == "stable"
    found = sweep(calm, wild).verdict("blocking")
    assert found.startswith("noisy: 1 of 2 races did not get to ± 5% in the median (the worst: ± ")
    assert sweep(calm, wild, within=0.0).verdict("blocking") == found
    assert sweep(calm, wild, within=9.0).verdict("blocking") == "stable"


def test_forms_that_some_races_lack() -> None:
    """There was no time for nonblocking calls, or an earlier version recorded the race."""
    made = sweep(outcome(8), outcome(4096, noise=0.5, nonblocking_gain=1.5))
    assert [len(made.of_form(form)) for form in FORMS] == [2, 1, 2]
    assert made.verdict("nonblocking").startswith("noisy: 1 of 1 race did not")
    assert [*made.document()["verdict"]] == [*FORMS]
    assert [*sweep(outcome(8)).document()["verdict"]] == [*sweep().document()["verdict"]]
    assert [*sweep().document()["verdict"]] == [*ALWAYS_RACED]


@pytest.mark.parametrize(
    ("collective", "ranks", "sources", "share"),
    [
        ("broadcast", 4, (), 1),
        ("reduce", 4, (), 1),
        ("allreduce", 4, (), 1.5),
        ("reduce_scatter_block", 4, (), 0.75),
        ("allgatherv", 4, (25,) * 4, 0.75),
        ("allgatherv", 4, (50, 50), 1),
        ("allreduce", 1, (), 0),
    ],
)
def test_bandwidths(collective: str, ranks: int, sources: tuple[int, ...], share: float) -> None:
    """As NCCL's tests define them."""
    given = cell(outcome(8)) | {"collective": collective, "ranks": ranks, "nbytes": 100}
    given["sources"] = [{"rank": rank, "nbytes": nbytes} for rank, nbytes in enumerate(sources)]
    race = msgspec.convert(given, RaceRecord)
    assert race.bandwidths(0.5) == (200, 200 * share)
    assert race.bandwidths(0.0) == (0, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "else"}, "its format is 'else', not 'collwise sweep'; name a file that bench"),
        ({"version": 2}, "its version is 2; this collwise reads 1"),
        ({"cells": [{}]}, "missing required field `collective`"),
        ({"order": "x"}, "Expected `array`"),
    ],
)
def test_sweeps_that_cannot_be_read(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "it.json"
    path.write_text(json.dumps(json.loads(json.dumps(sweep().document())) | change))
    with pytest.raises(InvalidArgument, match=r"read the record .*it\.json") as refusal:
        read_sweep(path)
    assert words in str(refusal.value)


def test_records_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"format": "collwise sw')
    (tmp_path / "empty.json").touch()
    for name, words in (
        ("cut.json", "truncated"),
        ("empty.json", "it is empty"),
        ("none", "No such file"),
        (".", "directory"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            read_record(tmp_path / name)


def test_tunings_and_profiles_are_records(tmp_path: Path) -> None:
    made = session(outcome(8), outcome(4096))
    path = tmp_path / "tuning.json"
    path.write_bytes(msgspec.json.encode(tuning_document(made), enc_hook=float))
    found = read_record(path)
    assert (len(found.races), found.profile) == (2, made.profile)
    path.write_text(
        json.dumps(
            {"format": "collwise measurement", "version": 1}
            | {"profile": made.profile.to_document(), "hockney": []}
        )
    )
    found = read_record(path)
    assert (found.kind, found.races, found.profile) == ("a measurement", (), made.profile)
    made.profile.save(tmp_path / "profile.json")
    found = read_record(tmp_path / "profile.json")
    assert (found.races, found.profile) == ((), made.profile)


def test_a_sweep_goes_on_where_it_was_begun(tmp_path: Path) -> None:
    earlier, later = sweep(outcome(8)), sweep()
    assert later.goes_on(tmp_path, earlier).cells == earlier.cells
    with pytest.raises(InvalidArgument, match="the ranks were in another order; name another"):
        sweep(order=(4, 3, 2, 1, 0)).goes_on(tmp_path, earlier)
    with pytest.raises(InvalidArgument, match="it is of 5 ranks, here are 2; name another"):
        sweep(order=(0, 1)).goes_on(tmp_path, earlier)
    with pytest.raises(InvalidArgument, match="races of the best few algorithms, not of flat;"):
        sweep(algorithm="flat").goes_on(tmp_path, earlier)
    with pytest.raises(InvalidArgument, match="races of flat, not of the best few"):
        later.goes_on(tmp_path, sweep(outcome(8), algorithm="flat"))
    assert sweep(algorithm="flat").goes_on(tmp_path, sweep(outcome(8), algorithm="flat")).cells
    elsewhere = msgspec.structs.replace(PROFILE.fingerprint, mpi_library="MPI 9")
    with pytest.raises(InvalidArgument, match="MPI library: "):
        msgspec.structs.replace(later, fingerprint=elsewhere).goes_on(tmp_path, earlier)
