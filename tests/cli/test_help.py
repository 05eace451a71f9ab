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

WITHOUT_MPI = f"""
import sys
from collwise.cli import main
for arguments in (*[[name, "--help"] for name in {list(COMMANDS)}], ["--help"], ["--version"],
                  ["plan", "-n", "8", "--bytes", "512", "--picture", "it.svg", *{POSTAL}],
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
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_a_command(collwise: Run, name: str, option: str) -> None:
    ended = collwise(name, option)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: collwise {name} ")
    assert "--json" in ended.out


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_fits_a_terminal(collwise: Run, arguments: list[str]) -> None:
    """Also its examples, which nobody wraps."""
    for line in collwise(*arguments).out.splitlines():
        assert len(line) <= 80, line


def test_help_planning_simulating_and_drawing_load_no_mpi(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_MPI],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_help_lists_every_command(collwise: Run) -> None:
    ended = collwise("--help")
    assert (ended.code, ended.err) == (0, "")
    text = " ".join(ended.out.split())
    for name, what in COMMANDS.items():
        assert f" {name} {what}" in text


def test_help_tells_every_exit_code(collwise: Run) -> None:
    text = " ".join(collwise("--help").out.split())
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


def test_no_arguments_show_the_help(collwise: Run) -> None:
    collwise().refused("Usage: collwise [OPTIONS] COMMAND", *(f"\n  {name} " for name in COMMANDS))


def test_version(collwise: Run) -> None:
    ended = collwise("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("collwise, version ")


@pytest.mark.parametrize(("typed", "meant"), [("simulat", "simulate"), ("messure", "measure")])
def test_a_near_command(collwise: Run, typed: str, meant: str) -> None:
    collwise(typed).refused(f"command {typed!r}", f"did you mean {meant}?")


def test_no_such_command(collwise: Run) -> None:
    collwise("frobnicate").refused("command 'frobnicate'", "known: ", *COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option(collwise: Run, name: str) -> None:
    collwise(name, "--frobnicate").refused("--frobnicate", f"Try 'collwise {name} --help'")


def takes_arguments(name: str) -> bool:
    command: click.Command = import_module(f"collwise.cli.{name}_command").command
    groups = isinstance(command, click.Group)
    return groups or any(isinstance(param, click.Argument) for param in command.params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if not takes_arguments(name)])
def test_an_extra_argument(collwise: Run, name: str) -> None:
    collwise(name, "frobnicate").refused("unexpected extra argument (frobnicate)")
