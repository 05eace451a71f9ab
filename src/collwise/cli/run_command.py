"""`collwise run`: a script with a collwise communicator in the place of `MPI.COMM_WORLD`."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from collwise.cli import output
from collwise.cli.failures import ScriptEnd
from collwise.cli.parameter_types import OUTPUT, POSITIVE
from collwise.cli.profile_option import profile_option
from collwise.cli.ranks_option import already_started
from collwise.errors import CollwiseError, InvalidArgument
from collwise.profiles.profile import Profile
from collwise.system.files import replace_file
from collwise.system.launcher import launched, start
from collwise.system.quantities import parse_share

if TYPE_CHECKING:  # the script loads MPI
    from collwise.comm import Comm

_CODE = ("-m", "-c", "-")


class _ScriptCommand(click.Command):
    """A command that passes all arguments after the script (or -m, -c, -) to the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [option for option in self.params if isinstance(option, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        place = 0
        while args[place:] and args[place].startswith("-") and args[place] not in (*_CODE, "--"):
            place += 2 if args[place] in valued else 1
        rest = args[place:]
        return super().parse_args(ctx, [*args[:place], "--", *rest[rest[:1] == ["--"] :]])


@click.command("run", cls=_ScriptCommand)
@click.option("-n", "--ranks", type=POSITIVE, help="Start so many ranks here.")
@profile_option
@click.option(
    "--effort",
    type=click.Choice(["measure", "estimate"]),
    default="measure",
    help="measure: replace the library's own only where a race was won. estimate: run what the"
    " model predicts to be fastest, without comparing it with the library's own.",
)
@click.option(
    "--summary", is_flag=True, help="When the script ends, print on standard error what it called."
)
@click.option(
    "--json",
    "json_path",
    type=OUTPUT,
    help="When the script ends, write the summary to a file, as JSON; collwise tune"
    " --from-summary reads it.",
)
@click.option(
    "--learn",
    metavar="SHARE",
    help="Try plans on the script's own calls, for at most this share of the time, such as 2%.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT|-m MODULE [ARGUMENT]...")
def command(
    ranks: int | None,
    profile_path: Path | None,
    effort: str,
    summary: bool,
    json_path: Path | None,
    learn: str | None,
    words: tuple[str, ...],
) -> NoReturn:
    """Run an unchanged mpi4py script with planned collectives.

    \b
        mpiexec -n 4 collwise run script.py --its --own arguments
        collwise run -n 4 -m package.module

    The script finds a collwise communicator in the place of MPI.COMM_WORLD and
    MPI.COMM_SELF.  An exception that nobody catches ends all ranks, as with
    python -m mpi4py.  COLLWISE_ALGORITHMS sets algorithms by hand.
    """  # noqa: D301
    if not words or words in (("-m",), ("-c",)):
        raise InvalidArgument("run a script", "none is named", "name a file, or -m and a module")
    file = f"{words[0]}/__main__.py" if os.path.isdir(words[0]) else words[0]  # noqa: PTH112
    if not words[0].startswith("-") and not os.path.isfile(file):  # noqa: PTH113 - never raises
        here = os.path.exists(file)  # noqa: PTH110
        seen = "a pipe or device cannot be read twice" if here else "there is no such file"
        raise InvalidArgument(f"run {words[0]}", seen, "name a script, or -m and a module, or -")
    if ranks is not None:
        if (launcher := launched()) is None or launcher.size == 1:
            _check(profile_path, learn)
            sys.exit(start(ranks, _again(), output.passed_on(), stdin=None))
        raise already_started(ranks, launcher)
    from collwise.mpi.runtime.script import run_script

    if json_path is not None:
        json_path = json_path.absolute()  # the script may change the folder
    records = summary or json_path is not None
    worlds: list[Comm] = []
    refusals: list[CollwiseError] = []

    def loaded() -> None:
        from collwise.mpi.runtime.roll_call import absent

        if absent():
            return
        from collwise.comm import Comm
        from collwise.comm.world_replacement import replace_world
        from collwise.mpi.runtime.world import world

        try:
            ours = Comm(world(), profile=profile_path, effort=effort, record=records, learn=learn)
            replace_world(ours)
            worlds.append(ours)
        except CollwiseError as problem:
            refusals.append(problem)
            raise SystemExit(problem.exit_code) from None

    process = os.getpid()
    code = run_script(words, loaded)
    if os.getpid() != process:
        raise ScriptEnd(code)  # a forked child has nothing to save or to tell
    if refusals:
        raise refusals[0]
    if records and worlds and worlds[0]._dispatch.rank == 0:  # the script may have ended MPI
        _tell(worlds[0], summary, json_path)
    raise ScriptEnd(code)


def _check(profile_path: Path | None, learn: str | None) -> None:
    """Before ranks start, raise CollwiseError for a wrong profile, share or algorithm."""
    from collwise.planner.by_hand import parse_choices, read_choices

    if profile_path is not None:
        Profile.load(profile_path)
    share = os.environ.get("COLLWISE_LEARN", "") if learn is None else learn
    parse_share(share, f"learning while running, for {share}")
    named = os.environ.get("COLLWISE_ALGORITHMS", "")
    read_choices(parse_choices(named, "the algorithms in COLLWISE_ALGORITHMS"))


def _again() -> list[str]:
    """The command line that starts one rank: this process's command line without -n."""
    words = list(sys.argv[1:])
    place = next(n for n, word in enumerate(words) if word[:2] == "-n" or word[:7] == "--ranks")
    taken = 2 if words[place] in ("-n", "--ranks") else 1
    return [sys.executable, "-m", "collwise", *words[:place], *words[place + taken :]]


def _tell(comm: "Comm", summary: bool, json_path: Path | None) -> None:
    from collwise.mpi.runtime.world import library_line
    from collwise.report.call_summary import calls_document, calls_lines, calls_table
    from collwise.tuning.occurred import MAX_TASKS

    calls, ranks = comm.calls(worth=MAX_TASKS), len(comm._world.hosts)
    starter = (launcher := launched()) and launcher.starter
    if not starter and len(set(comm._world.hosts)) > 1 and not comm._world.emulated:
        starter = "mpiexec"
    tuning = f"{starter} -n {ranks} collwise tune" if starter else f"collwise tune -n {ranks}"
    tuning += f" --from-summary {shlex.quote(str(json_path or 'FILE'))}"
    tuning = tuning if json_path else f"run it with --json FILE, then {tuning}"
    if summary:
        output.table(calls_table(calls), stream="err")
        output.write(*calls_lines(calls, tuning), stream="err")
        if comm._learning is not None:
            output.write(*comm._learning.lines, stream="err")
    if json_path is not None:
        document = calls_document(calls, library_line(), ranks, tuning)
        replace_file(json_path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")
