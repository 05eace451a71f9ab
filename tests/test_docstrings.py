"""The examples in docstrings give what they say."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import collwise

SOURCE = Path(collwise.__file__).parent
EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)


def _with_examples() -> list[str]:
    files = (f for f in SOURCE.rglob("*.py") if EXAMPLE.search(f.read_text(encoding="utf-8")))
    return sorted(".".join(f.relative_to(SOURCE.parent).with_suffix("").parts) for f in files)


@pytest.mark.parametrize("name", _with_examples())
def test_examples_in_docstrings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert result.attempted, "the examples stand where doctest does not look"
    assert not result.failed, capsys.readouterr().out
