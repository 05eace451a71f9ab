"""Every JSON document is what its schema says, which the site shows: no field less, none more."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from json_documents import DOCUMENTS, schema

from collwise.cli import COMMANDS
from collwise.report.tuning_tables import tuning_document
from tests.cli.running import check_schema
from tests.tuning.examples import WITH_NODES, outcome, session

WITHOUT_DOCUMENT = {"explore"}
"""It prints the address of its page."""


def test_every_command_has_a_schema() -> None:
    known = {name.partition("-")[0] for name in DOCUMENTS}
    assert known == {*COMMANDS} - WITHOUT_DOCUMENT | {"profile"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_schemas_and_refuse(name: str) -> None:
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    validator = jsonschema.Draft202012Validator(made)
    assert not validator.is_valid({})
    assert not validator.is_valid({"format": "collwise", "version": 1})


def test_a_tuning_and_its_profile() -> None:
    """With levels and sources; what commands print is held against schemas where it is tested."""
    outcomes = outcome(), outcome(sources=(0, 3))
    made = tuning_document(session(*outcomes, measured=WITH_NODES))
    written: dict[str, Any] = json.loads(msgspec.json.encode(made, enc_hook=float))
    check_schema("tune", {**written, "not_saved": []})
    check_schema("profile", written["profile"])
