"""The command line: `collwise COMMAND`.

`COMMANDS` is the only list of commands; NAME_command.py defines the command NAME.  Modules with
options that commands share: `problem_options`, `machine_options` (`planning_options` has both),
`profile_option`, and `ranks_option`, which starts ranks.  `parameter_types` reads options' values,
`grouped_command` groups options in the help.  `bench_ranges` says what `bench` races, `bench_grid`
starts `bench` for one part of a grid after another.
`output` prints and saves results, `failures` turns exceptions into messages and exit codes.

Exit codes are 0, 1, 2, and 130 when interrupted; `lab` and `run` pass on those of what they run.
`ProblemOptions` has a field for each option about the problem; `ABOUT` of `schedule/collectives.py`
has each option's collectives.  `MACHINE_OPTIONS` lists the options about the machine.
"""

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

from collwise.cli.failures import failing_clearly
from collwise.errors import UnknownName

COMMANDS = {
    "tune": "Measure, plan, race against the MPI library's own, report: the main job.",
    "measure": "Measure t0 and λ of this machine, with their quality.",
    "plan": "Say what would be chosen, why, and how far it is from the best possible.",
    "simulate": "Run schedules on an assumed or measured machine, up to millions of ranks.",
    "export": "Write schedules for other tools, and races as rules for MPI libraries.",
    "bench": "Race collectives against the library's own: one race, or a sweep.",
    "inspect": "Show what the MPI library's collectives do, seen from outside.",
    "scan": "Find out whether the library's defaults are bad here, and what mends it.",
    "compare": "Compare two records, cell by cell: sweeps, tunings or profiles.",
    "reproduce": "Run the papers again: every figure, table and claim, with a verdict.",
    "explore": "Open a page with sliders: what λ, ranks and bytes change.",
    "run": "Run any mpi4py script with collwise in the place of MPI.COMM_WORLD.",
    "wisdom": "Show, merge, pass on and forget what was learned.",
    "lab": "Run a command on emulated hosts with a chosen latency and rate.",
    "doctor": "Say what is here, what is wrong, and how to mend it.",
}


class Commands(click.Group):
    """The group of all commands; loads a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: D102
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: D102
        if name.startswith("-"):
            return None  # an option in a wrong place, which click explains
        if name not in COMMANDS:
            raise UnknownName.of("command", name, COMMANDS)
        command: click.Command = import_module(f"collwise.cli.{name}_command").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="collwise")
def collwise() -> None:
    """Measure the machine, plan the collective, run it on MPI.

    tune, measure, bench, inspect, scan, reproduce and run work on MPI ranks: -n 4 starts
    them, or a launcher does (mpiexec -n 4 collwise tune). lab runs commands
    on emulated hosts. The other commands need no MPI, except export for MPI libraries.

    Exit codes: 0 done, 1 a check failed or a result is wrong, 2 the request is wrong,
    130 interrupted.

    \b
    The shell (bash, zsh or fish) completes commands and options after
        eval "$(_COLLWISE_COMPLETE=bash_source collwise)"
    """  # noqa: D301


def main() -> None:
    """Run the command line and exit."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed before we began
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        if isinstance(file := getattr(sys, stream), TextIOWrapper):
            file.reconfigure(errors="replace")  # a terminal without λ shows ? in its place
    with failing_clearly():
        code = collwise.main(prog_name="collwise", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
