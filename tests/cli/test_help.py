"""Help, and what is said about commands and options that there are not."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from collwise.cli import COMMANDS
from tests.cli.conftest import Run
from tests.cli.running import POSTAL
from tests.mpi.launching import LIMIT_S

WITHOUT_MPI = f"""
import sys
from collwise.cli import main
for arguments in (*[[name, "--help"] for name in {list(COMMANDS)}], ["--help"], ["--version"],
                  ["plan", "-n", "8", "--bytes", "512", *{POSTAL}],
                  ["simulate", "-n", "8", "--bytes", "512", "--picture", "it.svg", *{POSTAL}]):
    sys.argv = ["collwise", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"{{arguments}} ended with {{end.code}}")
if "mpi4py.MPI" in sys.modules:
    sys.exit("MPI was loaded")
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(collwise: Run, name: str) -> None:
    """It fits a terminal, also its examples, which nobody wraps; odd options point to it."""
    ended = collwise(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: collwise {name} ")
    assert "--json" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    assert collwise(name, "-h") == ended
    collwise(name, "--frobnicate").refused("--frobnicate", f"Try 'collwise {name} --help'")


def test_help_planning_simulating_and_drawing_load_no_mpi(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_MPI],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd=folder,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_help_lists_every_command_and_exit_code(collwise: Run) -> None:
    out = collwise("--help").printed()
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    for name, what in COMMANDS.items():
        assert f" {name} {what}" in text
    for code in ("0 done", "1 a check failed", "2 the request is wrong", "130 interrupted"):
        assert code in text


@pytest.mark.parametrize("name", ["plan", "simulate"])
def test_long_help_is_in_groups(collwise: Run, name: str) -> None:
    """Every option once, under a heading."""
    text = collwise(name, "--help").out
    command: click.Command = import_module(f"collwise.cli.{name}_command").command
    headings = ["Options", "S-to-p broadcasts", "A measured machine", "An assumed machine"]
    places = [text.index(f"\n{heading}") for heading in (*headings, "The network")]
    assert places == sorted(places)
    listed = [line.split()[-1] if line.startswith("  -n, ") else line.split()[0]
              for line in text[places[0]:].replace("-n, --ranks", "--ranks").splitlines()
              if line.startswith("  --")]  # fmt: skip
    assert sorted(listed) == sorted(
        param.opts[-1] for param in command.params if isinstance(param, click.Option)
    )


def test_version(collwise: Run) -> None:
    out = collwise("--version").printed()
    assert out.startswith("collwise, version ")


def test_what_is_no_command(collwise: Run) -> None:
    collwise().refused("Usage: collwise [OPTIONS] COMMAND", *(f"\n  {name} " for name in COMMANDS))
    for typed, meant in (("simulat", "simulate"), ("messure", "measure")):
        collwise(typed).refused(f"command {typed!r}", f"did you mean {meant}?")
    collwise("frobnicate").refused("command 'frobnicate'", "known: ", *COMMANDS)


def test_the_shell_completes(collwise: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `--help` says how."""
    monkeypatch.setenv("_COLLWISE_COMPLETE", "bash_complete")
    for typed, completed in (("pl", "plan"), ("wisdom sh", "show")):
        words = f"collwise {typed}"
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        assert collwise().out == f"plain,{completed}\n"
