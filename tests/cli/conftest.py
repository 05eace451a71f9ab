import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from collwise.cli import main
from tests.cli.running import Ended

Run = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, in which profiles are looked for and saved."""
    for name in ("COLLWISE_MPIEXEC", "COLLWISE_STATUS_FILE", "COLLWISE_TERMINAL", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLLWISE_PROFILE", str(tmp_path / "profile.json"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def collwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """The command line, run in this process; ranks, if it starts any, are processes."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["collwise", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        assert isinstance(code, int)
        return Ended(code, *capfd.readouterr())

    return run
