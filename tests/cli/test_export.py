"""`collwise export`, and `collwise simulate --goal`, which reads what it wrote."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collwise.formats.mpich_selection import FORMAT
from collwise.formats.selection_rules import Installed
from collwise.profiles.records import RaceResult
from collwise.tuning import exported_rules
from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL, document
from tests.planner.machines import race
from tests.profiles.example import PROVENANCE, of_library

ASKED = ("allreduce", "-n", "6", "--bytes", "48", *HOCKNEY, "--gamma", "1ns")
FORMATS = ("goal", "smpi", "chrome-trace")


@pytest.mark.parametrize("name", FORMATS)
def test_to_standard_output_to_a_file_and_into_a_document(
    collwise: Run, folder: Path, name: str
) -> None:
    shown = collwise("export", name, *ASKED).printed()
    found = document(collwise, "export", name, *ASKED)
    assert (found["exported"], found["text"]) == (name, shown)
    assert found["algorithm"].startswith("allreduce/")
    assert document(collwise, "export", name, *ASKED, "--out", "new/it")["path"] == "new/it"
    out = collwise("export", name, *ASKED, "--out", "new/it").printed()
    assert out.splitlines()[0] == f"algorithm    {found['algorithm']}"
    assert (folder / "new" / "it").read_text() == shown
    if name == "chrome-trace":
        assert json.loads(shown)["otherData"]["what"].startswith("allreduce of 48 bytes")


def test_an_algorithm_with_settings(collwise: Run) -> None:
    asked = ("export", "goal", "-n", 4, "--bytes", 64, *POSTAL, "--algorithm", "chain_segmented")
    lines = collwise(*asked, "--set", "segment=16").out.splitlines()
    assert lines.count("num_ranks 4") == 1
    assert sum(": send 16b" in line for line in lines) == 12


def test_a_program_is_timed_as_the_schedule_was(collwise: Run, folder: Path) -> None:
    collwise("export", "goal", *ASKED, "--algorithm", "recursive_doubling", "--out", "it.goal")
    found = document(collwise, "simulate", "--goal", "it.goal", *HOCKNEY, "--picture", "it.svg")
    simulated = document(collwise, "simulate", *ASKED, "--algorithm", "recursive_doubling")
    assert found["completion_s"] == simulated["simulations"][0]["completion_s"]
    assert found["finish_s"] == simulated["simulations"][0]["finish_s"]
    assert found["messages"] == simulated["simulations"][0]["messages"]
    assert "it.goal" in (folder / "it.svg").read_text()
    out = collwise("simulate", "--goal", "it.goal", *HOCKNEY, "--topology", "torus:2x3").printed()
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert {"complete", "topology", "calcs", "messages"} <= set(lines)


def test_refused(collwise: Run, folder: Path) -> None:
    (folder / "odd.goal").write_text("num_ranks 2\nrank 0 {\nsend 8b to 7\n}\n")
    for words, *said in (
        (("export", "goals", *ASKED), "No such command 'goals'"),
        (("export", "goal", *POSTAL), "Missing options"),
        (("export", "goal", *ASKED, "--set", "a=1"), "name it with --algorithm"),
        (("export", "goal", *ASKED, "--algorithm", "nothing"), "algorithm 'nothing'"),
        (("export", "smpi", *ASKED, "--out", "odd.goal/it"), "cannot be made"),
        (("simulate", *POSTAL), "Missing options -n and --bytes, or --goal."),
        (("simulate", "-n", 4, *POSTAL), "Missing option --bytes, or --goal."),
        (
            ("simulate", "--goal", "odd.goal", "-n", 4, *POSTAL),
            "--goal FILE says what is sent: leave out -n",
        ),
        (("simulate", "--goal", "odd.goal", *POSTAL), "line 3: there is no rank 7"),
        (("simulate", "--goal", "none", *POSTAL), "No such file"),
    ):
        collwise(*words).refused(*said)
    (folder / "odd.goal").write_text("num_ranks 2\n")
    asked = ("simulate", "--goal", "odd.goal", "--algorithm", "binomial", *POSTAL)
    collwise(*asked).refused("--goal FILE says what is sent: leave out --algorithm")
    others = (
        "--root 1", "--op max", "--dtype int32", "--order rank", "--sources all", "--shape 1x2",
        "--pattern equal", "--set k=4", "--bytes 8", "reduce",
    )  # fmt: skip
    for other in others:
        name = other.split()[0] if other.startswith("-") else "COLLECTIVE"
        ended = collwise("simulate", "--goal", "odd.goal", *other.split(), *POSTAL)
        ended.refused(f"leave out {name}")
    both = collwise("simulate", "broadcast", "--root", 0, "--goal", "odd.goal", *POSTAL)
    both.refused("leave out COLLECTIVE, --root")
    assert collwise("simulate", "--goal", "odd.goal", *POSTAL).code == 0
    for command in ("plan", "simulate", "export goal"):
        planned = (*command.split(), *ASKED, "--algorithm", "library:binomial")
        collwise(*planned).refused("own algorithms have no schedule; only bench and Comm run them")


installed_library = cache(exported_rules.installed_library)


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process tells what the installed library is: one for all commands."""
    monkeypatch.setattr(exported_rules, "installed_library", installed_library)


def raced_profile(folder: Path, library: str, *races: RaceResult, **changes: Any) -> Path:
    return of_library(library, race_results=races, **changes).save(folder / "raced.json")


WON = race(nbytes=512, algorithm="allreduce/library:ring", collective="allreduce")


@pytest.mark.mpi
@pytest.mark.usefixtures("asked_once")
def test_rules_for_the_installed_library(collwise: Run, folder: Path) -> None:
    path = raced_profile(folder, "MPICH 5.0.2", WON)
    asked = ("export", "mpich", "--profile", path)
    text = collwise(*asked).out
    assert text.startswith("// collwise export: rules for MPICH 5.0.2")
    assert f"\n// {exported_rules.SIZES}\n" in text
    assert "algorithm=MPIR_Allreduce_intra_ring" in text
    found = document(collwise, *asked)
    assert (found["exported"], found["text"]) == ("mpich", text)
    assert found["cannot_say"] == [*FORMAT.cannot_say]
    for line in (*FORMAT.cannot_say, *FORMAT.not_raced):
        assert f"\n//   {line}\n" in text
    for _ in range(2):  # an export may be replaced
        out = collwise(*asked, "--out", "rules.json").printed()
    lines = [
        f"export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={folder / 'rules.json'}",
        "export MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=auto",
    ]
    assert out.splitlines()[-2:] == [f"use      {line}" for line in lines]
    warned = "Another version may abort programs in MPI_Init"
    assert out.splitlines()[-3].startswith(f"caution  {warned}")
    assert f"\n// {warned}" in text
    assert collwise(*asked, "--out", "rules.json", "--env").out.splitlines() == lines
    assert (folder / "rules.json").read_text() == text
    found = document(collwise, *asked, "--out", "rules.json")
    assert list(found["environment"].values()) == [str(folder / "rules.json"), "auto"]
    (folder / "notes").write_text(f"\n{text}")
    before = path.read_bytes()
    for words, *said in (
        (["--out", path], "is the file of --profile, too"),
        (["--env"], "give --out"),
        (["--out", folder], "is a folder"),
        (["--out", "notes"], "is there and is no export"),
        (["--profile", "nothing.json"], "there is no such file"),
    ):
        collwise(*asked, *words).refused(*said)
    assert path.read_bytes() == before
    assert (folder / "notes").read_text() == f"\n{text}"
    collwise("export", "openmpi", "--profile", path).refused("this is MPICH 5.0.2")
    other = raced_profile(folder, "MPICH 4.3.2", WON)
    collwise("export", "mpich", "--profile", other).refused("MPICH 5.0.2 is installed here")
    none = raced_profile(folder, "MPICH 5.0.2")
    collwise("export", "mpich", "--profile", none).refused("the profile has 0 races")


def test_rules_for_mpich_5_1(collwise: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed library's description is a stand-in for the library."""
    own: dict[str, Any] = {"name=allreduce-intra-auto": {"algorithm=MPIR_Allreduce_intra_tree": {}}}
    words = "MPIR_Allreduce_intra_ring", "local_node_size"
    there = Installed("MPICH 5.1.0b1", tables=[json.dumps(own)], accepted=words)
    monkeypatch.setattr(exported_rules, "installed_library", lambda: there)
    path = raced_profile(folder, "MPICH 5.1.0b1", WON)
    out = collwise("export", "mpich", "--profile", path, "--out", "it.json").printed()
    named = f"use      export MPIR_CVAR_COLL_SELECTION_JSON_FILE={folder / 'it.json'}"
    assert named in out.splitlines()
    text = (folder / "it.json").read_text()
    read = json.loads(re.sub("(?m)^//.*", "", text))
    usual = "collwise-usual-allreduce"
    assert read.keys() == {"name=allreduce-intra-auto", f"name={usual}"}
    assert read[f"name={usual}"] == own["name=allreduce-intra-auto"]
    assert read["name=allreduce-intra-auto"]["any"] == f"call={usual}"
    assert "algorithm=MPIR_Allreduce_intra_ring" in text


@pytest.mark.mpi
@pytest.mark.usefixtures("asked_once")
def test_rules_for_several_ranks_on_each_of_several_nodes(collwise: Run, folder: Path) -> None:
    there = msgspec.structs.replace(PROVENANCE, hosts={"a": 2, "b": 2})
    won = msgspec.structs.replace(WON, settings={"composition": "2"}, ranks_per_node="2x2")
    path = raced_profile(folder, "MPICH 5.0.2", won, provenance=there)
    asked = ("export", "mpich", "--profile", path)
    for words in ((), ("--json",), ("--check",)):
        collwise(*asked, *words).refused("several nodes need 2 files", "give --out")
    beside = folder / "rules.compositions"
    beside.write_text("mine\n")
    collwise(*asked, "--out", "rules").refused("rules.compositions is there and is no export")
    assert (beside.read_text(), (folder / "rules").exists()) == ("mine\n", False)
    beside.unlink()
    beside.mkdir()
    collwise(*asked, "--out", "rules").refused("rules.compositions")
    beside.rmdir()
    for _ in range(2):
        out = collwise(*asked, "--out", "rules").printed()
    assert "mpich    rules.compositions" in out.splitlines()
    assert f"TUNING_JSON_FILE={beside}" in out
    assert "composition=MPIDI_Allreduce_intra_composition_beta" in beside.read_text()


@pytest.mark.mpi
@pytest.mark.usefixtures("asked_once")
def test_rules_for_a_library_that_is_not_here(collwise: Run, folder: Path) -> None:
    """Each format is refused, checked or not."""
    preset = msgspec.structs.replace(WON, algorithm="allreduce/library:17")
    for form, library in (("intel", "Intel MPI 2021.18.1"), ("openmpi", "Open MPI 5.0.11")):
        asked = ("export", form, "--profile", raced_profile(folder, library, preset))
        for words in ((), ("--check",), ("--out", "rules")):
            collwise(*asked, *words).refused(
                f"was measured with {library}, and MPICH 5.0.2 is installed here",
                "export where the same library is installed",
            )
    assert not (folder / "rules").exists()


def test_without_a_saved_profile(collwise: Run, folder: Path) -> None:
    collwise("export", "intel").refused("there is no such file")
