"""Options of `plan`, `simulate` and `export`: a problem, and the machine to solve it on."""

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from collwise.cli import output
from collwise.cli.grouped_command import all_of, gathered, said
from collwise.cli.machine_options import (
    MACHINE_OPTIONS,
    ChosenMachine,
    machine_from,
    machine_options,
)
from collwise.cli.parameter_types import COLLECTIVE, FILE, PICTURE, RANKS, SIZE
from collwise.cli.problem_options import (
    BYTES_HELP,
    COLLECTIVE_NAMES,
    PROBLEM,
    ProblemOptions,
    problem_options,
)
from collwise.model.levels import Levels
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem, placed

if TYPE_CHECKING:
    from collwise.formats.goal_reader import Goal

SLOW_FROM_RANKS = 128
"""From this number of ranks on, simulating all schedules takes seconds."""
_IN_GOAL = ("collective", "ranks", "nbytes", "algorithm", "settings", *PROBLEM)
"""Options, by their names here, that have no meaning beside a GOAL program."""
MANY_OBJECTS = 200_000
"""New objects between two garbage collections: many, since operations have no reference cycles."""


def _settings(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"{pair!r}: write it as in lam=4", ctx, param)
        if name in settings:
            raise click.BadParameter(f"{name} is given twice; give it once", ctx, param)
        settings[name] = value
    return settings


def algorithm_options(about: str) -> Any:
    """The options --algorithm and --set.   about: the help of --algorithm."""
    return all_of(
        click.option("--algorithm", help=about),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_settings,
            help="A parameter of the algorithm, such as lam=4 or segment=4k; once for each.",
        ),
    )


picture_option = click.option(
    "--picture",
    type=PICTURE,
    help="Draw the schedule into .svg or .png files: in time, as NAME-timeline; and in space, as"
    " NAME: its mesh with the load of the links, or its tree. What is combined by several ranks"
    " comes down no tree: in space it is drawn on the links of a mesh or a torus only.",
)


class PlanningQuestion(NamedTuple):
    """A problem, the reason for its order of combining, and the machine to solve it on."""

    problem: Problem
    reason: str
    machine: ChosenMachine

    def waiting_note(self, doing: str) -> str:
        """A note to show before work that takes long; empty if the work is short.

        doing: the name of the work, such as "planning".
        """
        machine, topology, problem = self.machine.machine, self.machine.topology, self.problem
        formulas = topology is None and machine.independent_ports
        if problem.ranks < SLOW_FROM_RANKS or (formulas and not problem.kind.has_sources):
            return ""
        work = "schedules are simulated message by message"
        if isinstance(machine, Levels):  # there they are in columns, or their times are rough
            work = "many schedules are compared"
        return f"{doing} {problem}: {work}, which may take a while"


class GoalQuestion(NamedTuple):
    """A GOAL program, and the machine to time the program on."""

    goal: "Goal"
    machine: ChosenMachine


def planning_options(*own: Any, reads_goal: bool = False) -> Callable[[Any], Any]:
    """Options of a problem and a machine; the command gets them as one argument, `question`.

    own: the command's own options.   reads_goal: whether --goal FILE may replace the problem.
    The names of the collectives replace {collectives} in the command's docstring.
    """
    needed = not reads_goal
    goal_option = click.option(
        "--goal",
        "goal_path",
        type=FILE,
        help="Time the GOAL program in this file, instead of a collective.",
    )
    add = gathered(
        "question",
        _question,
        click.argument("collective", type=COLLECTIVE, default="broadcast"),
        click.option("-n", "--ranks", type=RANKS, required=needed, help="Number of ranks."),
        click.option("--bytes", "nbytes", type=SIZE, required=needed, help=BYTES_HELP),
        *[goal_option] * reads_goal,
        problem_options(order=True),
        *own,
        output.json_option,
        machine_options,
    )

    def named(command: Callable[..., Any]) -> Any:
        command.__doc__ = (command.__doc__ or "").format(collectives=COLLECTIVE_NAMES)
        return add(command)

    return named


def _question(values: dict[str, Any]) -> PlanningQuestion | GoalQuestion:
    gc.set_threshold(MANY_OBJECTS, 20, 20)
    collective, ranks, nbytes = (values.pop(name) for name in ("collective", "ranks", "nbytes"))
    request: ProblemOptions = values.pop("request")
    described = {name: values.pop(name) for name in MACHINE_OPTIONS}
    given = {"-n": ranks, "--bytes": nbytes}
    if (path := values.pop("goal_path", None)) is not None:
        if both := said(*_IN_GOAL):
            raise click.UsageError(f"--goal FILE says what is sent: leave out {', '.join(both)}")
        from collwise.formats.goal_reader import read_goal

        goal = read_goal(path)
        largest = int(goal.sizes.max(initial=0))
        return GoalQuestion(goal, machine_from(described, goal.ranks, largest, None, None))
    if missing := [name for name, value in given.items() if value is None]:
        plural = "s" if missing[1:] else ""
        raise click.UsageError(f"Missing option{plural} {' and '.join(missing)}, or --goal.")
    if values.get("settings") and values.get("algorithm") is None:
        raise click.UsageError("--set is about one algorithm: name it with --algorithm")
    request.check([collective])
    if values.get("picture") is not None:
        from collwise.report.schedule_files import check_ranks

        check_ranks(ranks)
    combines = COLLECTIVES[collective].combines
    combined = (request.op or OP, request.dtype or DTYPE) if combines else None
    machine = machine_from(described, ranks, nbytes, request.shape, combined)
    problem, reason = request.problem(collective, ranks, nbytes, machine.topology)
    return PlanningQuestion(placed(problem, machine.machine), reason, machine)
