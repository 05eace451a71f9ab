"""Every JSON document is what its schema says, which the site shows: no field less, none more."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from json_documents import DOCUMENTS, schema

from collwise.cli import COMMANDS
from collwise.report.tuning_tables import tuning_document
from tests.cli.conftest import Run
from tests.cli.running import HOCKNEY, POSTAL, check_schema, document
from tests.tuning.examples import WITH_NODES, outcome, session

WITHOUT_DOCUMENT = {"explore"}
"""It prints the address of its page."""
GOAL = "num_ranks 2\nrank 0 {\nl0: send 8b to 1 tag 0\n}\nrank 1 {\nl0: recv 8b from 0 tag 0\n}\n"
PRINTED: dict[str, list[tuple[object, ...]]] = {
    "plan": [
        ("-n", 8, "--bytes", 512, *POSTAL),
        ("-n", 8, "--bytes", 512, *POSTAL, "--picture", "tree.svg"),
        ("-n", 8, "--bytes", 64, "--levels", "cluster:2x4", "--algorithm", "multilevel"),
        ("allgatherv", "-n", 6, "--bytes", 64, "--sources", "0,3", "--preset", "paragon"),
        ("-n", 5, "--bytes", 4096, "--root", 1, "--profile", "some.json"),
    ],
    "simulate": [
        ("-n", 8, "--bytes", 512, *POSTAL),
        ("-n", 6, "--bytes", 512, *HOCKNEY, "--topology", "mesh:2x3", "--algorithm", "binomial"),
    ],
    "simulate-goal": [("--goal", "it.goal", *POSTAL)],
    "export": [
        ("goal", "-n", 4, "--bytes", 512, *POSTAL),
        ("chrome-trace", "-n", 4, "--bytes", 512, *POSTAL, "--out", "trace.json"),
    ],
    "compare": [("tuning.json", "tuning.json", "--fail-above", "1.1"), ("some.json", "some.json")],
    "wisdom-list": [()],
    "wisdom-show": [("some.json",)],
    "wisdom-why": [("broadcast", "-n", 5, "--bytes", 4096, "--profile", "some.json")],
    "reproduce": [("vandegeijn1991", "G-e1", "--claims")],
}
"""Arguments of commands that need no ranks, by the names of schemas."""
ELSEWHERE = {
    *("measure", "tune", "bench", "bench-grid", "inspect", "scan", "run", "lab", "doctor"),
    *("export-rules", "profile"),
}
"""Printed by ranks, hosts or processes: `check_schema` in the tests of these commands."""


@pytest.fixture
def records(folder: Path) -> None:
    made = tuning_document(session(outcome(), outcome(sources=(0, 3)), measured=WITH_NODES))
    (folder / "tuning.json").write_bytes(msgspec.json.encode(made, enc_hook=float))
    (folder / "some.json").write_text(json.dumps(made["profile"]), encoding="utf-8")
    (folder / "it.goal").write_text(GOAL, encoding="utf-8")


def test_every_command_has_a_schema() -> None:
    known = {name.partition("-")[0] for name in DOCUMENTS}
    assert known == {*COMMANDS} - WITHOUT_DOCUMENT | {"profile"}
    assert {*PRINTED} | ELSEWHERE == {*DOCUMENTS}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_schemas_and_refuse(name: str) -> None:
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    validator = jsonschema.Draft202012Validator(made)
    assert not validator.is_valid({})
    assert not validator.is_valid({"format": "collwise", "version": 1})


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.usefixtures("records")
def test_what_is_printed(collwise: Run, name: str) -> None:
    words = ["simulate"] if name == "simulate-goal" else name.split("-")
    for arguments in PRINTED[name]:
        made = document(collwise, *words, *arguments)
        check_schema(name, made)
        with pytest.raises(AssertionError, match="surplus"):
            check_schema(name, {**made, "surplus": 1})


def test_a_tuning_and_its_profile(records: None, folder: Path) -> None:
    made: dict[str, Any] = json.loads((folder / "tuning.json").read_text(encoding="utf-8"))
    check_schema("tune", {**made, "not_saved": []})
    check_schema("profile", made["profile"])
