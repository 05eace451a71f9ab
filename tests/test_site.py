"""The site is built, strictly, as readers build it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import collwise as cw
from collwise.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 600


@pytest.mark.exhaustive
def test_every_name_has_a_page_and_nothing_is_loaded_from_elsewhere() -> None:
    built = subprocess.run(
        [os.environ.get("UV", "uv"), "run", "--group", "docs", "docs/build_site.py"],
        cwd=ROOT,
        env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(ROOT / ".venv-docs")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    site = ROOT / "build" / "site"
    for name in cw.__all__:
        page = (site / "reference" / "api" / f"{name}.html").read_text(encoding="utf-8")
        assert f"collwise.{name}" in page
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert not [name for name in COMMANDS if f'id="collwise-{name}"' not in commands]
    loaded = re.compile(r"<(?:script|img|link rel=\"stylesheet\")[^>]+(?:src|href)=\"https?:")
    for path in site.rglob("*.html"):
        assert not loaded.findall(path.read_text(encoding="utf-8")), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(\W?https?:|@import", path.read_text(encoding="utf-8")), path
