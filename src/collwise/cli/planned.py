"""What `plan` and `simulate` are asked: a problem, and a machine to solve it on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from collwise.cli import output
from collwise.cli.collective_options import (
    bytes_option,
    check_options,
    chosen_sources,
    dtype_option,
    op_option,
    order_option,
    root_option,
    sources_options,
)
from collwise.cli.machine_options import Given, machine_from, machine_options
from collwise.cli.parameter_types import RANKS, drawable
from collwise.errors import InvalidArgument
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import find_collective, kind_of
from collwise.schedule.problem import Problem

if TYPE_CHECKING:  # drawing loads Matplotlib
    from collwise.report.html_report import Drawn

LONG = 128
"""Ranks from which on it takes seconds to play all schedules."""

F = TypeVar("F", bound=Callable[..., Any])


picture_option = click.option(
    "--picture",
    type=click.Path(path_type=Path),
    callback=drawable,
    help="Draw the schedule into .svg or .png files: in time, as NAME-timeline; and in space, as"
    " NAME: its mesh with the load of the links, or its tree. What a reduce or an allreduce"
    " combines comes down no tree: in space they are drawn on the links of a mesh or a torus only.",
)


class Asked(NamedTuple):
    """A problem, as the arguments that `planner.choose.plan` takes, and where to solve it."""

    collective: str
    arguments: Mapping[str, Any]
    given: Given


def planning_options(*own: Any) -> Callable[[F], F]:
    """Options that describe a problem and a machine; `asked` reads them.  own: the command's."""
    first = (
        click.argument("collective", default="broadcast"),
        click.option("-n", "--ranks", type=RANKS, required=True, help="Number of ranks."),
        bytes_option,
        root_option,
        op_option,
        dtype_option,
        order_option,
    )
    options = (*first, *own, output.json_option, sources_options(), machine_options)

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def asked(options: Mapping[str, Any]) -> Asked:
    """What options ask for.

    Raises UnknownName or InvalidArgument for what is no collective, machine or sources, and for
    options that say nothing about the collective.
    """
    collective = find_collective(options["collective"]).name  # its name for an alias
    ranks, shape = options["ranks"], options["shape"]
    check_options([collective], options)
    op, dtype = options["op"] or OP, options["dtype"] or DTYPE
    given = machine_from(
        options, ranks, shape, (op, dtype) if kind_of(collective).combines else None
    )
    sources, topology = options["sources"], given.topology
    if kind_of(collective).has_sources and sources is None:
        raise InvalidArgument(
            f"{collective} over {ranks} ranks",
            "nothing says which ranks have data",
            "give --sources 0,5,9, or for instance --pattern equal --sources 3",
        )
    if shape is None and sources is not None and topology is not None:
        shape = topology.shape
    arguments = {
        "ranks": ranks,
        "nbytes": options["nbytes"],
        "root": options["root"],
        "op": options["op"],
        "dtype": options["dtype"],
        "order": options["order"],
        "sources": chosen_sources(ranks, sources, options["pattern"], shape),
        "shape": shape,
        "topology": topology,
    }
    return Asked(collective, arguments, given)


def drawn_lines(drawn: "Drawn | None") -> list[str]:
    """Which pictures were written."""
    if drawn is None:
        return []
    space = drawn.space or "none in space: what is combined does not come down a tree"
    return [f"picture      {space}", f"timeline     {drawn.time}"]


def drawn_document(drawn: "Drawn | None") -> dict[str, list[str]]:
    """The same as JSON."""
    return {} if drawn is None else {"pictures": [str(path) for path in drawn.files]}


def long_work(doing: str, problem: Problem, given: Given) -> str:
    """What to say before work that will take a while; nothing if it will not.

    doing: what is done, such as "planning".
    """
    laws = given.topology is None and given.machine.independent_ports
    if problem.ranks < LONG or (laws and not problem.kind.has_sources):
        return ""  # formulas say at once how long schedules take
    return f"{doing} {problem}: schedules are played message by message, which may take a while"
