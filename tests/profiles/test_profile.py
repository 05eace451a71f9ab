"""Profiles: exact round trips, clear words about damage, refusal of strangers, atomic files."""

import json
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.attack.test_public_api import soon
from tests.profiles import example
from tests.profiles.example import point, race_result
from tests.tuning.examples import NODE, WITH_NODES

from collwise.errors import DamagedProfile, ForeignProfile, InvalidArgument
from collwise.model.levels import Levels
from collwise.model.placement import Placement
from collwise.profiles.level_machine import filled, placement_on
from collwise.profiles.profile import VERSION, Profile, with_measurements
from collwise.profiles.records import FORMS, Measurements, local_provenance, ranks_per_node_of

FINGERPRINT = msgspec.structs.replace(example.FINGERPRINT, cpu_model="Test CPU ½")
PROVENANCE = msgspec.structs.replace(example.PROVENANCE, hosts={"node1": 2, "node2": 2}, ranks=4)
PROFILE = example.profile(
    [
        point(8, lam=1.8, t0_s=1e-6),
        point(512, lam=0.75, t0_s=1.5e-6),
        point(4096, lam=1.25, t0_s=1e-5, segment=1),
        point(8192, lam=1.25, t0_s=1.1e-5),
        point(8, "blocking", 1 / 3, t0_s=0.1 + 0.2),
    ],
    provenance=PROVENANCE,
    fingerprint=FINGERPRINT,
    race_results=(race_result(512),),
)


# Reading and writing


def test_a_round_trip_is_exact() -> None:
    text = PROFILE.to_json()
    again = Profile.from_json(text)
    assert again == PROFILE
    assert again.to_json() == text
    assert Profile.from_json(text.encode()) == PROFILE
    assert again.points[-1].t0_s == 0.1 + 0.2
    assert again.points[-1].lam == 1 / 3


def test_the_file_explains_itself(tmp_path: Path) -> None:
    path = PROFILE.save(tmp_path / "profile.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == "collwise profile"
    assert document["version"] == VERSION
    assert list(document)[:2] == ["format", "version"]
    page = (Path(__file__).parents[2] / "docs" / "reference" / "profile.md").read_text()
    assert f"The current version is {VERSION}; files of versions 1 to {VERSION - 1} are" in page
    assert document["units"]["*_s"] == "seconds"
    assert document["provenance"]["hosts"] == {"node1": 2, "node2": 2}
    assert document["fingerprint"]["mpi_library"] == "MPICH 5.0.2"
    assert len(path.read_text().splitlines()) > 50  # for people


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(PROFILE.to_json(), encoding="utf-8-sig")
    assert Profile.load(path) == PROFILE


# The machine in it


def test_the_machine_is_piecewise_and_cached() -> None:
    machine = PROFILE.machine
    assert machine is PROFILE.machine
    segments = PROFILE.machine_for("nonblocking").segments
    assert [[p.nbytes for p in segment] for segment in segments] == [[8, 512], [4096, 8192]]
    cost = machine.message(8)
    assert (cost.gap, cost.lam) == (Fraction("1e-6"), Fraction(9, 5))
    assert machine.message(512).gap == Fraction("1.5e-6")
    assert machine.message(512).lam >= 1  # measured below 1
    blocking = PROFILE.machine_for("blocking")
    assert blocking.message(8).lam == 1
    assert blocking.sizes() == (8,)


def test_a_mode_that_was_not_measured() -> None:
    only = with_measurements(PROFILE, points=PROFILE.points[-1:])
    with pytest.raises(InvalidArgument, match="nonblocking sends: the profile has no such"):
        _ = only.machine


def test_the_quality_of_the_whole() -> None:
    assert PROFILE.disagreement == 0.04
    unknown = tuple(msgspec.structs.replace(p, disagreement=None) for p in PROFILE.points)
    assert with_measurements(PROFILE, points=unknown).disagreement is None


# What it learns


def test_newer_races_replace_older_ones() -> None:
    newer = race_result(512, decision="library", algorithm="broadcast/flat", settings={})
    other = race_result(64)
    learned = PROFILE.with_race_results([newer, other])
    assert learned.race_results == (other, newer)
    assert PROFILE.race_results == (race_result(512),)
    assert Profile.from_json(learned.to_json()) == learned


def test_races_between_other_numbers_of_sources_are_others() -> None:
    about = {"collective": "allgatherv", "algorithm": "allgatherv/ring"}
    few, many, again = (race_result(512, sources=count, **about) for count in (2, 8, 8))
    learned = PROFILE.with_race_results([many, few, again])
    assert [result.sources for result in learned.race_results] == [2, 8, 0]
    assert Profile.from_json(learned.to_json()) == learned


def test_profiles_of_version_1_load() -> None:
    """They know no sources, no placements, and no t0 that was fitted over sizes."""
    document = json.loads(PROFILE.to_json()) | {"version": 1}
    del document["other_placements"]
    for entry, name in ("points", "fitted"), ("wins", "sources"), ("wins", "ranks_per_node"):
        for record in document[entry]:
            del record[name]
    assert Profile.from_json(json.dumps(document)) == PROFILE


def test_races_of_version_5_say_placement() -> None:
    profile = PROFILE.with_race_results([race_result(8, ranks_per_node="2x2")])
    text = profile.to_json()
    assert '"placement"' not in text
    document = json.loads(text) | {"version": 5}
    for record in document["wins"]:
        record["placement"] = record.pop("ranks_per_node")
    assert Profile.from_json(json.dumps(document)).to_json() == text
    document["wins"][0]["placement"] = 4
    with pytest.raises(DamagedProfile, match=r"got `int` - at `\$.wins\[0\].placement`"):
        Profile.from_json(json.dumps(document))


def test_races_of_nonblocking_calls() -> None:
    """Files of version 8 have none."""
    every = [race_result(8, form=form) for form in FORMS]
    profile = PROFILE.with_race_results(every)
    assert Profile.from_json(profile.to_json()) == profile
    assert {race.form for race in profile.race_results} == {*FORMS}
    before = json.loads(PROFILE.to_json()) | {"version": 8}
    assert Profile.from_json(json.dumps(before)) == PROFILE


# Placements


def _elsewhere(**hosts: int) -> Measurements:
    made = msgspec.structs.replace(PROVENANCE, hosts=hosts, ranks=sum(hosts.values()))
    return Measurements(verdict=f"{hosts}", provenance=made, points=(point(8, lam=2.0, t0_s=2e-6),))


def test_measurements_with_another_placement() -> None:
    """The same placement first, then the nearest number of ranks, then what was measured last."""
    spread, one = _elsewhere(a=1, b=1, c=1, d=1), _elsewhere(a=16)
    profile = msgspec.structs.replace(PROFILE, other_placements=(spread, one))
    assert profile.at(4) is profile
    assert profile.at(5, "2x2") is profile
    for asked in ((4, "4x1"), (8, "4x1")):
        assert profile.at(*asked).measurements == spread
        assert profile.at(*asked).machine.message(8).gap == Fraction("2e-6")
    assert profile.at(12).measurements == one
    assert profile.at(12).other_placements == (PROFILE.measurements, spread)
    assert profile.at(12).race_results == profile.race_results
    assert Profile.from_json(profile.to_json()) == profile
    with pytest.raises(ValueError, match="two measurements have the same ranks_per_node"):
        msgspec.structs.replace(PROFILE, other_placements=(spread, spread))


def test_races_with_another_placement() -> None:
    """Those of version 1 count everywhere."""
    mine, other, old = (race_result(8, ranks_per_node=where) for where in ("2x2", "4x1", ""))
    profile = PROFILE.with_race_results([mine, other, old])
    assert [r.ranks_per_node for r in profile.races_at(4)] == ["", "2x2", ""]
    assert [r.ranks_per_node for r in profile.races_at(4, "4x1")] == ["", "4x1", ""]
    assert profile.races_at(2) == profile.race_results
    former: dict[str, Any] = {"placement": "4x1"}
    for method in (profile.at, profile.races_at):
        with pytest.warns(DeprecationWarning, match="write ranks_per_node= for placement="):
            assert method(4, **former) == method(4, "4x1")


@pytest.mark.parametrize(
    ("counts", "name"), [([4], "1x4"), ([1, 1, 1], "3x1"), ([16, 8, 16], "2x16 1x8"), ([], "")]
)
def test_placements(counts: list[int], name: str) -> None:
    assert ranks_per_node_of(counts) == name


def test_settings_are_json_values() -> None:
    with pytest.raises(TypeError, match="Fraction"):
        race_result(8, settings={"alpha": Fraction(9, 16)})


def test_an_interval_has_its_ends_in_order() -> None:
    with pytest.raises(ValueError, match="speedup_low"):
        race_result(8, speedup_low=3.0)
    with pytest.raises(ValueError, match=r"lam_interval.*wrong order"):
        point(8, lam_interval=(2.0, 1.0))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_never_gets_in(bad: float) -> None:
    with pytest.raises(ValueError, match=r"lam = .*: not a finite number"):
        point(8, lam=bad, lam_interval=None)
    with pytest.raises(ValueError, match="t0_interval_s"):
        point(8, t0_interval_s=(0.0, bad))


# Damage


def _edited(*path: Any, value: Any) -> Callable[[], bytes]:
    def edit() -> bytes:
        document = json.loads(PROFILE.to_json())
        *parents, last = path
        place = document
        for step in parents:
            place = place[step]
        if value is ...:
            del place[last]
        else:
            place[last] = value
        return json.dumps(document).encode()

    return edit


def _text(old: str, new: str) -> Callable[[], bytes]:
    return lambda: PROFILE.to_json().replace(old, new, 1).encode()


DAMAGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it is empty"),
    "blank": (lambda: b" \n\n", "it is empty"),
    "truncated": (lambda: PROFILE.to_json().encode()[:700], "truncated"),
    "not JSON": (lambda: b"t0 = 3\n", r"malformed.*\(byte 4\), in line 1"),
    "a comma": (_text(f'"version": {VERSION},', f'"version": {VERSION}'), r"malformed.*in line 4"),
    "not UTF-8": (lambda: PROFILE.to_json().encode("latin-1"), r"not UTF-8 text \(at byte \d+\)"),
    "a list": (lambda: b"[1, 2]", "Expected `object`, got `array`"),
    "no format": (_edited("format", value=...), "its format is None, not 'collwise profile'"),
    "another format": (_edited("format", value="wisdom"), "its format is 'wisdom'"),
    "a later version": (
        _edited("version", value=VERSION + 1),
        f"its version is {VERSION + 1}.*reads up to {VERSION}; update",
    ),
    "no version": (_edited("version", value="x"), r"\$\.version"),
    "NaN": (_text('"lam": 1.8', '"lam": NaN'), "malformed.*in line"),
    "infinite": (_text('"lam": 1.8', '"lam": 1e999'), r"\$\.points\[0\]\.lam|out of range"),
    "null": (_edited("points", 0, "lam", value=None), r"got `null` - at `\$\.points\[0\]\.lam`"),
    "negative t0": (_edited("points", 1, "t0_s", value=-1e-6), r"\$\.points\[1\]\.t0_s"),
    "zero t0": (_edited("points", 1, "t0_s", value=0), r"> 0.*\$\.points\[1\]\.t0_s"),
    "text for a number": (_edited("points", 1, "t0_s", value="1"), r"\$\.points\[1\]\.t0_s"),
    "zero bytes": (_edited("points", 0, "nbytes", value=0), r"\$\.points\[0\]\.nbytes"),
    "an unknown mode": (
        _edited("points", 0, "mode", value="fast"),
        r"its points\[0\]\.mode is 'fast', which is unknown",
    ),
    "unsorted": (
        _edited("points", 0, "nbytes", value=1000),
        r"points\[1\]\.nbytes = 512 after 1000",
    ),
    "a size twice": (_edited("points", 1, "nbytes", value=8), r"points\[1\]\.nbytes = 8 after 8"),
    "segment": (_edited("points", 2, "segment", value=3), r"points\[2\]\.segment = 3"),
    "first segment": (_edited("points", 0, "segment", value=1), r"points\[0\]\.segment = 1"),
    "interval": (
        _edited("points", 0, "t0_interval_s", value=[2.0, 1.0]),
        r"t0_interval_s = .*wrong order.*\$\.points\[0\]",
    ),
    "no points": (_edited("points", value=[]), "points is empty"),
    "points missing": (_edited("points", value=...), "missing required field `points`"),
    "an unknown field": (_edited("points", 0, "foo", value=1), r"field `foo`.*\$\.points\[0\]"),
    "unknown at the top": (_edited("foo", value=1), "unknown field `foo`"),
    "a field missing": (_edited("fingerprint", "layout", value=...), r"`layout`.*\$\.fingerprint"),
    "two winners": (
        lambda: _edited("wins", value=[json.loads(msgspec.json.encode(race_result(8)))] * 2)(),
        "two of them are about the same",
    ),
    "too deep": (
        lambda: b'{"format": "collwise profile", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "in each other too deeply",
    ),
    "immense t0": (_edited("points", 0, "t0_s", value=1e308), r"\$\.points\[0\]"),
    "negative λ": (_edited("points", 0, "lam", value=-4), r"\$\.points\[0\]"),
    "zero λ": (_edited("points", 0, "lam", value=0), r"\$\.points\[0\]"),
    "immense λ": (_edited("points", 0, "lam", value=1e300), r"\$\.points\[0\]"),
    "too many bytes": (_edited("points", 0, "nbytes", value=2**60), r"\$\.points\[0\]"),
    "no such root": (_edited("wins", 0, "root", value=99), r"\$\.wins\[0\]"),
    "too many ranks": (_edited("wins", 0, "ranks", value=2**40), r"\$\.wins\[0\]"),
    "ranks beyond int64": (_edited("wins", 0, "ranks", value=2**70), r"\$\.wins\[0\]"),
    "no such collective": (_edited("wins", 0, "collective", value="nope"), r"\$\.wins\[0\]"),
    "experiment 3": (
        _edited("medians", 0, "experiment", value=3),
        r"its medians\[0\]\.experiment is 3, which",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_explained(kind: str, tmp_path: Path) -> None:
    make, seen = DAMAGE[kind]
    path = tmp_path / "profile.json"
    path.write_bytes(make())
    with pytest.raises(DamagedProfile, match=f"(?s){seen}") as caught:
        Profile.load(path)
    assert caught.value.asked == f"read the profile {path}"
    assert any(word in caught.value.remedy for word in ("collwise measure", "a collwise profile"))
    assert caught.value.exit_code == 2
    with pytest.raises(DamagedProfile, match="read the profile: "):
        Profile.from_json(make())


def test_no_truncation_goes_unnoticed() -> None:
    text = PROFILE.to_json().rstrip()
    for length in range(len(text)):
        with pytest.raises(DamagedProfile):
            Profile.from_json(text[:length])


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DamagedProfile, match="no such file; measure this machine"):
        Profile.load(tmp_path / "absent.json")
    with pytest.raises(DamagedProfile, match="Is a directory"):
        Profile.load(tmp_path)
    with soon("a file that waits for the kernel's next message"), pytest.raises(DamagedProfile):
        Profile.load("/proc/kmsg")

    def refuse(path: Path, **_: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(DamagedProfile, match="Permission denied"):
        Profile.load(tmp_path / "profile.json")


# Strangers


def test_a_foreign_profile_lists_every_difference() -> None:
    PROFILE.check(msgspec.structs.replace(FINGERPRINT))
    here = msgspec.structs.replace(FINGERPRINT, cpu_model="Other", mpi_library="Open MPI 5.0.11")
    with pytest.raises(ForeignProfile) as caught:
        PROFILE.check(here)
    made = "use the profile measured on node1, node2 at 2025-01-02T03:04:05+00:00"
    assert caught.value.asked == made
    assert caught.value.seen == (
        "this is another machine: processor: 'Test CPU ½' there, 'Other' here;"
        " MPI library: 'MPICH 5.0.2' there, 'Open MPI 5.0.11' here"
    )
    assert caught.value.remedy == "measure here: collwise measure -n 4"


def test_many_hosts_are_abridged() -> None:
    hosts = {f"n{i}": 1 for i in range(100)}
    provenance = msgspec.structs.replace(PROVENANCE, hosts=hosts)
    foreign = with_measurements(PROFILE, provenance=provenance)
    with pytest.raises(ForeignProfile, match=r"measured on n0, n1, n2, … at"):
        foreign.check(msgspec.structs.replace(FINGERPRINT, layout="several nodes"))


# Atomic files


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_dying_before_the_end_keeps_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PROFILE.save(tmp_path / "profile.json")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, die)
    with pytest.raises(KeyboardInterrupt):
        PROFILE.with_race_results([race_result(1)]).save(path)
    assert Profile.load(path) == PROFILE
    assert _names(tmp_path) == ["profile.json"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"(Is a directory|Permission denied); name another"):
        PROFILE.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="save the profile as"):
        PROFILE.save(tmp_path / "file" / "profile.json")
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(InvalidArgument, match="save the profile as"):
        PROFILE.save(circle)
    assert _names(tmp_path) == ["circle", "file"]
    assert not [p for p in tmp_path.parent.iterdir() if p.name.endswith(".tmp")]


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    saved = PROFILE.save(tmp_path / "profile.json")
    assert saved.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_profile_that_could_not_be_read_again_is_not_saved(tmp_path: Path) -> None:
    """Construction does not check types; saving does, before it touches the file."""
    wrong = with_measurements(PROFILE, verdict=3)
    with pytest.raises(DamagedProfile, match=r"to be saved: .*\$\.verdict"):
        wrong.save(tmp_path / "profile.json")
    assert _names(tmp_path) == []


@pytest.mark.no_cover
def test_concurrent_writers_never_mix(tmp_path: Path) -> None:
    """Processes and threads write while we read: every reading is one whole profile."""
    path = PROFILE.save(tmp_path / "profile.json")
    lengths = zip("abcd", (9, 5000) * 2, strict=True)
    variants = [with_measurements(PROFILE, verdict=letter * n) for letter, n in lengths]

    def save_often(variant: Profile) -> None:
        for _ in range(10):
            variant.save(path)

    children = []
    for variant in variants[:2]:
        if (child := os.fork()) == 0:
            code = 1
            try:
                save_often(variant)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    threads = [threading.Thread(target=save_often, args=(variant,)) for variant in variants[2:]]
    for thread in threads:
        thread.start()
    seen = []
    while children or any(thread.is_alive() for thread in threads):
        seen.append(Profile.load(path))
        ended = dict(os.waitpid(child, os.WNOHANG) for child in children)
        assert not any(ended.values())
        children = [child for child in children if child not in ended]
    assert all(profile in (PROFILE, *variants) for profile in seen)
    assert _names(tmp_path) == ["profile.json"]


def test_provenance_of_here_and_now() -> None:
    made = local_provenance(
        hosts={"here": 2}, mpi4py="4.1.2", command="collwise measure", usable_cores=4, notes=("x",)
    )
    assert made.created.endswith("+00:00")
    assert made.python.startswith("3.")
    assert made.collwise
    assert made.system
    assert (made.usable_cores, made.notes) == (4, ("x",))


# Levels


def test_where_ranks_are_in_the_levels_of_a_profile() -> None:
    """Nodes come from MPI, groups of nodes by the names of hosts."""
    deep = with_measurements(
        WITH_NODES,
        levels=(NODE, msgspec.structs.replace(NODE, name="cluster")),
        groups={"a": (0,), "b": (0,), "c": (1,)},
    )
    hosts, nodes = ["c", "a", "c", "b"], [0, 1, 0, 2]
    flat, two, three = PROFILE.measurements, WITH_NODES.measurements, deep.measurements
    assert placement_on([flat, two], hosts, nodes) == Placement.of(nodes)
    assert placement_on([three], hosts, nodes) == Placement.of(nodes, [1, 0, 1, 0])
    assert placement_on([three], ["d", *hosts[1:]], nodes) is None
    assert placement_on([flat], hosts, nodes) is None
    assert filled(two, 5) == Placement.of([0, 0, 1, 1, 2])
    assert filled(three, 5) is None
    older = msgspec.structs.replace(PROFILE, other_placements=(WITH_NODES.measurements,))
    assert isinstance(older.machine_on(Placement.of(nodes)), Levels)


def test_what_a_level_must_be() -> None:
    with pytest.raises(ValueError, match="points is empty"):
        msgspec.structs.replace(NODE, points=())
    with pytest.raises(ValueError, match="do not ascend"):
        msgspec.structs.replace(NODE, port=NODE.port[::-1])


def test_where_one_sender_fills_the_port_its_own_t0_counts() -> None:
    """And not where many do not notice it; between measured sizes it is on a straight line."""
    machine = WITH_NODES.machine_on(Placement.of([0, 0, 1]))
    assert isinstance(machine, Levels)
    assert machine.at(2, 8) == (Fraction("1.08e-6"), Fraction("8.64e-6"))
    assert machine.at(2, 512) == (Fraction("2e-6"), 8 * Fraction("6.12e-6"))
    assert machine.at(2, 4096) == (Fraction("2e-6"), 8 * Fraction("4.196e-5"))
    assert machine.port(1, 4096) == Fraction("4.2e-5")
    assert machine.port(1, 8) == 0
