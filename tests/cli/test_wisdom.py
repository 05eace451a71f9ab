"""`collwise wisdom`: what is saved is listed, shown, merged, passed on, forgotten and explained."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collwise.profiles.profile import Profile, with_measurements
from collwise.profiles.records import RaceResult
from collwise.profiles.store import default_path
from collwise.system.files import locked
from collwise.tuning.saving import save_merged
from tests.cli.conftest import Run
from tests.cli.running import document
from tests.profiles.example import example, won_race


def race(ranks: int = 4, nbytes: int = 1024, **changes: Any) -> RaceResult:
    return won_race(ranks=ranks, nbytes=nbytes, ranks_per_node=f"1x{ranks}", **changes)


def known(library: str, *races: RaceResult) -> Profile:
    return example(library).with_race_results(races)


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two saved profiles, by their MPI library's name."""
    monkeypatch.delenv("COLLWISE_PROFILE")
    races = race(), race(8), race(collective="allreduce", algorithm="allreduce/ring")
    profiles = {"one": known("One MPI 1.0", *races), "two": known("Two MPI 2.0")}
    return {name: one.save(default_path(one.fingerprint)) for name, one in profiles.items()}


def test_nothing_is_saved(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLLWISE_PROFILE")
    assert collwise("wisdom", "list") == (0, "nothing is saved: run `collwise tune`\n", "")
    collwise("wisdom", "show").refused("no saved profile matches (saved: none)")


def test_a_list(collwise: Run, store: dict[str, Path]) -> None:
    store["two"].write_text("{}")
    told = document(collwise, "wisdom", "list")["profiles"]
    one, two = sorted(told, key=lambda each: each["name"])
    assert (one["name"], one["path"]) == (store["one"].stem, str(store["one"]))
    assert (one["mpi_library"], one["races"]) == ("One MPI 1.0", {"4": 2, "8": 1})
    assert one["measured"] == ["1x4"]
    assert "its format is None" in two["damaged"]
    text = collwise("wisdom", "list").out
    assert "2 on 4, 1 on 8" in text
    assert "damaged: its format" in text


def test_one_is_shown(collwise: Run, store: dict[str, Path]) -> None:
    text = collwise("wisdom", "show", "one").out
    assert "broadcast/chain" in text
    assert "1.90 to 2.10" in text
    shown = document(collwise, "wisdom", "show", store["one"])
    assert Profile.from_json(json.dumps(shown["profile"])) == Profile.load(store["one"])
    assert "Races" not in collwise("wisdom", "show", "two").out
    for words, seen in (
        (["show"], "2 saved profiles match (saved: "),
        (["show", "three"], "no saved profile matches (saved: "),
        (["show", "x" * 5000], "no saved profile matches (saved: "),
    ):
        collwise("wisdom", *words).refused(seen, "wisdom list")
    collwise("wisdom", "why", "broadcast", "-n", "4", "--bytes", "8").refused(
        "the saved profile of this machine", "2 other profiles saved"
    )


def test_why(collwise: Run, store: dict[str, Path]) -> None:
    asked = "wisdom", "why", "broadcast", "-n", "4", "--bytes", "2000", "--profile", "one"
    text = collwise(*asked).out
    assert "blocking     broadcast/chain: it won the race of 1,024 bytes on 4 ranks" in text
    assert "nonblocking  the library's own: no race of nonblocking calls decides, and" in text
    assert "persistent   the library's own: persistent calls of broadcast were not raced" in text
    assert "Races of broadcast on 4 ranks" in text
    told = document(collwise, *asked)
    assert told["blocking"]["algorithm"] == "broadcast/chain"
    assert told["blocking"]["race"] == told["races"][0]
    other = collwise("wisdom", "why", "reduce", "-n", "4", "--bytes", "8", "--profile", "two")
    assert "Races of" not in other.out


def test_why_a_library_s_own_algorithm(collwise: Run, folder: Path) -> None:
    """One won as a blocking call, one with a setting as a persistent call."""
    won = won_race(collective="allreduce", algorithm="allreduce/library:recexch",
                   settings={"k": "4"}, form="persistent")  # fmt: skip
    blocking = won_race(collective="allreduce", algorithm="allreduce/library:tree", nbytes=2048)
    path = known("One MPI 1.0", won, blocking).save(folder / "own.json")
    asked = "wisdom", "why", "allreduce", "-n", "4", "--bytes", "2000", "--profile", path
    lines = collwise(*asked).out.splitlines()
    assert lines[1:4] == [
        "blocking     allreduce/library:tree: it won the race of 2,048 bytes on 4 ranks, 2.00 times"
        " as fast as the library's own",
        "nonblocking  the library's own: no race of nonblocking calls decides, and"
        " allreduce/library:tree won one of blocking calls",
        "persistent   allreduce/library:recexch: it won the race of 1,024 bytes on 4 ranks, 2.00"
        " times as fast as the library's own",
    ]
    table = "\n".join(lines[4:])
    assert "library:recexch" in table
    assert "library:tree" in table
    told = document(collwise, *asked)
    assert told["persistent"]["algorithm"] == "allreduce/library:recexch"
    assert told["persistent"]["race"]["settings"] == {"k": "4"}
    in_order = collwise(*asked, "--order", "rank").out
    assert "library:tree combines in an order that is not legal here" in in_order


def test_merging_copying_importing(collwise: Run, store: dict[str, Path], folder: Path) -> None:
    made = msgspec.structs.replace(example().provenance, created="2026-01-01T00:00:00")
    newest = with_measurements(known("One MPI 1.0", race(16)), provenance=made)
    later = newest.save(folder / "later.json")
    assert collwise("wisdom", "merge", later, "one", "-o", "both.json").code == 0
    both = Profile.load(folder / "both.json")
    assert {r.ranks for r in both.race_results} == {4, 8, 16}
    assert both.provenance.created.startswith("2026")
    collwise("wisdom", "merge", "one", "two", "-o", "x.json").refused("of different machines")
    unknown = msgspec.structs.replace(race(16), algorithm="broadcast/gone")
    gone = known("One MPI 1.0", unknown).save(folder / "gone.json")
    merged = collwise("wisdom", "merge", gone, later, "-o", "both.json")
    assert "dropped  1 race on 16 ranks, whose algorithms there are no more" in merged.out
    for name in ("copy", "export"):  # the second is its former name
        assert collwise("wisdom", name, f"{name}.json", "--profile", "one").code == 0
        assert Profile.load(folder / f"{name}.json") == Profile.load(store["one"])
    listed = collwise("wisdom", "--help").out
    assert ("copy " in listed, "export " in listed) == (True, False)
    ended = collwise("wisdom", "import", "later.json")
    assert f"profile  {store['one']}" in ended.out
    assert {r.ranks for r in Profile.load(store["one"]).race_results} == {4, 8, 16}


def test_forgetting(collwise: Run, store: dict[str, Path]) -> None:
    for words in (["one"], ["one", "--all", "-n", "4"]):
        collwise("wisdom", "forget", *words).refused("it is not said what")
    told = collwise("wisdom", "forget", "one", "--collective", "broadcast", "-n", "8").out
    assert told == f"1 race forgotten: {store['one']}\n"
    assert [r.ranks for r in Profile.load(store["one"]).race_results] == [4, 4]
    collwise("wisdom", "forget", "one", "--collective", "broadcast")
    assert [r.collective for r in Profile.load(store["one"]).race_results] == ["allreduce"]
    collwise("wisdom", "forget", "one", "-n", "4")
    assert Profile.load(store["one"]).race_results == ()
    assert collwise("wisdom", "forget", "two", "--all").code == 0
    assert not store["two"].exists()


@pytest.mark.parametrize("processes", [4, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_saves_at_once_lose_nothing(tmp_path: Path, processes: int) -> None:
    """Every process saves races of its own, all at the same time."""
    path, rounds, children = tmp_path / "wisdom.json", 3, []
    begin, started = os.pipe()
    for number in range(processes):
        if (child := os.fork()) == 0:
            code = 1
            try:
                os.close(started)
                os.read(begin, 1)  # until the parent closes its end
                for again in range(rounds):
                    save_merged(known("One MPI 1.0", race(2 + number, 8 << again)), path)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(started)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * processes
    os.close(begin)
    races = {(r.ranks, r.nbytes) for r in Profile.load(path).race_results}
    assert races == {(2 + n, 8 << again) for n in range(processes) for again in range(rounds)}


def test_a_lock_that_is_never_given_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, collwise: Run
) -> None:
    path = folder / "profile.json"
    saved = known("One MPI 1.0", race()).save(folder / "it.json")
    monkeypatch.setattr(locked.__wrapped__, "__defaults__", (0.02,))  # type: ignore[attr-defined]
    with locked(path):
        ended = collwise("wisdom", "import", saved)
    ended.refused("another process has been changing it for 0.02 s")
    assert collwise("wisdom", "import", saved).code == 0


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    save_merged(known("One MPI 1.0", race()), tmp_path / "it.json")
    assert (tmp_path / "it.json").exists()

    def broken(*_: object) -> None:
        raise OSError(5, "a broken disk")

    monkeypatch.setattr("fcntl.flock", broken)
    with pytest.raises(ValueError, match="a broken disk"):
        save_merged(known("One MPI 1.0", race()), tmp_path / "it.json")
