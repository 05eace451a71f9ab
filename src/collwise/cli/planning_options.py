"""What `plan` and `simulate` are asked: a problem, and a machine to solve it on."""

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from collwise.cli import output
from collwise.cli.grouped_command import gathered
from collwise.cli.machine_options import (
    MACHINE_OPTIONS,
    ChosenMachine,
    machine_from,
    machine_options,
)
from collwise.cli.parameter_types import COLLECTIVE, PICTURE, RANKS
from collwise.cli.problem_options import (
    COLLECTIVE_NAMES,
    ProblemOptions,
    bytes_option,
    problem_options,
)
from collwise.model.levels import Levels
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import COLLECTIVES
from collwise.schedule.problem import Problem, placed

SLOW_FROM_RANKS = 128
"""Ranks from which on it takes seconds to simulate all schedules."""
MANY_OBJECTS = 200_000
"""New objects after which Python looks for circles among them; lists of operations have none."""

picture_option = click.option(
    "--picture",
    type=PICTURE,
    help="Draw the schedule into .svg or .png files: in time, as NAME-timeline; and in space, as"
    " NAME: its mesh with the load of the links, or its tree. What is combined by several ranks"
    " comes down no tree: in space it is drawn on the links of a mesh or a torus only.",
)


class PlanningQuestion(NamedTuple):
    """A problem, why its contributions are combined in its order, the machine to solve it on."""

    problem: Problem
    reason: str
    machine: ChosenMachine

    def waiting_note(self, doing: str) -> str:
        """What to say before work that will take a while; empty if it will not.

        doing: what is done, such as "planning".
        """
        machine, topology, problem = self.machine.machine, self.machine.topology, self.problem
        formulas = topology is None and machine.independent_ports
        if problem.ranks < SLOW_FROM_RANKS or (formulas and not problem.kind.has_sources):
            return ""
        work = "schedules are simulated message by message"
        if isinstance(machine, Levels):  # there they are in columns, or their times are rough
            work = "many schedules are compared"
        return f"{doing} {problem}: {work}, which may take a while"


def planning_options(*own: Any) -> Callable[[Any], Any]:
    """Options of a problem and a machine; the command gets them as one argument, `question`.

    own: the command's own options.   In its docstring {collectives} stands for their names.
    """
    add = gathered(
        "question",
        _question,
        click.argument("collective", type=COLLECTIVE, default="broadcast"),
        click.option("-n", "--ranks", type=RANKS, required=True, help="Number of ranks."),
        bytes_option,
        problem_options(order=True),
        *own,
        output.json_option,
        machine_options,
    )

    def named(command: Callable[..., Any]) -> Any:
        command.__doc__ = (command.__doc__ or "").format(collectives=COLLECTIVE_NAMES)
        return add(command)

    return named


def _question(values: dict[str, Any]) -> PlanningQuestion:
    gc.set_threshold(MANY_OBJECTS, 20, 20)
    collective, ranks, nbytes = (values.pop(name) for name in ("collective", "ranks", "nbytes"))
    request: ProblemOptions = values.pop("request")
    request.check([collective])
    described = {name: values.pop(name) for name in MACHINE_OPTIONS}
    if values.get("picture") is not None:
        from collwise.report.schedule_files import check_ranks

        check_ranks(ranks)
    combines = COLLECTIVES[collective].combines
    combined = (request.op or OP, request.dtype or DTYPE) if combines else None
    machine = machine_from(described, ranks, nbytes, request.shape, combined)
    problem, reason = request.problem(collective, ranks, nbytes, machine.topology)
    return PlanningQuestion(placed(problem, machine.machine), reason, machine)
