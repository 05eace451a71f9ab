"""Options that describe a problem, shared by commands such as plan, simulate, bench and tune."""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from collwise.cli.grouped_command import gathered, grouped
from collwise.cli.parameter_types import INTEGER, SHAPE, SIZE, ParsedType
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.model.topology import Topology, near_square
from collwise.planner.choose import problem_for
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import ABOUT, COLLECTIVES, check_about
from collwise.schedule.problem import ORDERS, Order, Problem

if TYPE_CHECKING:  # sessions run on MPI
    from collwise.tuning.outcomes import Task

DEFAULT_SOURCES = "every fourth rank, but at least two"
"""The sources of a race if no option names any."""
MAX_LISTED = 1 << 20
"""The largest number of ranks in a list on the command line."""
MAX_SIMULATED, MAX_PLANNED = 1 << 20, 1 << 24
"""The largest products ranks × sources: to simulate an allgatherv, and to plan one."""

COLLECTIVE_NAMES = "{} or {}".format(", ".join(list(COLLECTIVES)[:-1]), list(COLLECTIVES)[-1])
_ABOUT = {**ABOUT, "pattern": ABOUT["sources"]}
"""For each option, the collectives to which it applies."""

BYTES_HELP = (
    "Bytes, such as 512 or 64k: of the message, of everybody's vector, or of each source's"
    " contribution."
)
bytes_option = click.option("--bytes", "nbytes", type=SIZE, required=True, help=BYTES_HELP)


class Sources(NamedTuple):
    """The value of --sources: some ranks, or a number of them; every rank if neither is given."""

    ranks: tuple[int, ...] | None = None
    number: int | None = None


def _parse_sources(text: str) -> Sources:
    """Read --sources: ranks (0,5,9 or 0-7,12; one rank is "5,"), a number of ranks (5), or all."""
    if text.strip().lower() == "all":
        return Sources()
    if re.fullmatch(r"\s*[0-9]{1,10}\s*", text):
        return Sources(number=int(text))
    ranges = []
    for part in text.strip().removesuffix(",").split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10}))?\s*", part)
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise InvalidArgument(
                "sources",
                f"{part.strip() or text!r} is neither a rank nor some of them",
                "give a list such as 0,5,9 or 0-7,12 (one rank: 5,), a number and --pattern, or"
                " all",
            )
        ranges.append(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    if (count := sum(map(len, ranges))) > MAX_LISTED:
        remedy = f"give at most {MAX_LISTED}"
        raise InvalidArgument("sources", f"{count} ranks are too many for a list", remedy)
    return Sources(tuple(chain(*ranges)))


def _parse_pattern(text: str) -> str:
    """The name of a distribution of sources; raises UnknownName."""
    if (name := text.replace("-", "_")) not in DISTRIBUTIONS:
        raise UnknownName.of("source distribution", name, DISTRIBUTIONS)
    return name


class ProblemOptions(NamedTuple):
    """The options that describe the problem.  An option not given is None, but the root is 0."""

    root: int
    op: str | None
    dtype: str | None
    order: Order | None
    sources: Sources | None
    pattern: str | None
    shape: tuple[int, int] | None

    def check(self, collectives: Sequence[str]) -> None:
        """Raise InvalidArgument for options that contradict each other, or suit no collective.

        collectives: the names of the collectives that the user asks for.
        """
        check_about(collectives, [name for name in _ABOUT if getattr(self, name)], _ABOUT, "--")
        number = None if self.sources is None else self.sources.number
        if self.pattern is None and number is not None:
            seen = f"--sources {number}, without a pattern"
            remedy = f"add --pattern equal (or another), or write --sources {number}, for a rank"
        elif self.pattern is not None and self.sources is None:
            seen, remedy = f"--pattern {self.pattern} without a number", "add --sources NUMBER"
        elif self.pattern is not None and number is None:
            seen = f"a list of ranks, and --pattern {self.pattern}"
            remedy = "give the list alone, or a number of sources and the pattern"
        else:
            return
        raise InvalidArgument("the sources of an s-to-p broadcast", seen, remedy)

    def problem(
        self,
        collective: str,
        ranks: int,
        nbytes: int,
        topology: Topology | None = None,
        *,
        default_sources: bool = False,
    ) -> tuple[Problem, str]:
        """The problem, and the reason for its order of combining.

        nbytes: bytes of the message, of each rank's vector, or of each source.   topology: has the
        mesh if no option gives its shape.   default_sources: take DEFAULT_SOURCES if no option
        names sources.   Raises InvalidArgument and UnknownName.
        """
        names = ("root", "op", "dtype", "order", "shape")
        applying = {name: getattr(self, name) for name in names if collective in ABOUT[name]}
        if COLLECTIVES[collective].has_sources:
            shape = self.shape or (topology.shape if topology else None) or near_square(ranks)
            applying["sources"] = self._source_ranks(collective, ranks, shape, default_sources)
        return problem_for(collective, ranks=ranks, nbytes=nbytes, topology=topology, **applying)

    def task(self, collective: str, ranks: int, nbytes: int, *, round_up: bool = False) -> "Task":
        """The task to race.   round_up: to whole elements or blocks, if there are no sources."""
        from collwise.tuning.outcomes import Task
        from collwise.tuning.session import check_raceable

        round_up = round_up and not COLLECTIVES[collective].has_sources
        first = 0 if round_up else nbytes
        problem, reason = self.problem(collective, ranks, first, default_sources=True)
        task = Task(problem, self.op or OP, self.dtype or DTYPE, reason)
        if round_up:
            task = task.resized(nbytes)
        check_raceable(task)
        return task

    def _source_ranks(
        self, collective: str, ranks: int, shape: tuple[int, int], default_sources: bool
    ) -> tuple[int, ...]:
        if self.sources is None:
            if default_sources:
                return distribute("equal", shape, min(max(ranks // 4, 2), ranks))
            raise InvalidArgument(
                f"{collective} over {ranks} ranks",
                "nothing says which ranks have data",
                "give --sources 0,5,9, or for instance --pattern equal --sources 3",
            )
        listed = range(ranks) if self.sources.ranks is None else self.sources.ranks
        count = len(listed) if self.sources.number is None else self.sources.number
        check_amount(ranks, count, MAX_PLANNED, "its schedules name every source on every rank")
        return tuple(listed) if self.pattern is None else distribute(self.pattern, shape, count)


PROBLEM = ProblemOptions._fields
"""The names of the options about the problem."""


def check_amount(ranks: int, sources: int, most: int, why: str) -> None:
    """Raise InvalidArgument if ranks × sources exceed `most`.   why: the reason in the error."""
    if ranks * max(sources, 1) > most:
        asked = f"an s-to-p broadcast over {ranks} ranks from {sources} sources"
        raise InvalidArgument(asked, why, f"give ranks times sources of at most {most}")


def problem_options(*, order: bool = False, default_sources: str = "") -> Callable[[Any], Any]:
    """Options that a command gets as one argument `request`, of the type `ProblemOptions`.

    order: whether to add --order.   default_sources: the default of --sources, for the help.
    """
    with_sources = grouped("S-to-p broadcasts")
    default = f"  [default: {default_sources}]" * bool(default_sources)
    order_option = click.option(
        "--order",
        type=click.Choice(ORDERS),
        help="Combine in this order at least (rank: that of the ranks; fixed: with the same"
        " brackets always)  [default: what is legal].",
    )
    return gathered(
        "request",
        lambda values: ProblemOptions(**{name: values.pop(name, None) for name in PROBLEM}),
        click.option(
            "--root", type=INTEGER, default=0, help="Rank that sends, or gets the result."
        ),
        click.option(
            "--op",
            help="Operator of a collective that combines: sum, max, noncommutative, …"
            f"  [default: {OP}]",
        ),
        click.option(
            "--dtype",
            help=f"Type of the elements that are combined, as NumPy names it  [default: {DTYPE}]",
        ),
        *[order_option] * order,
        with_sources(
            "--sources",
            type=ParsedType("RANKS|NUMBER|all", _parse_sources),
            metavar="RANKS|NUMBER|all",
            help="Ranks that have data: 0,5,9 or 0-7,12 (one rank: 5,), or all; or their"
            f" number, with --pattern{default}.",
        ),
        with_sources(
            "--pattern",
            type=ParsedType("name", _parse_pattern),
            help=f"So many sources in this pattern of the mesh: {', '.join(DISTRIBUTIONS)}.",
        ),
        with_sources(
            "--shape",
            type=SHAPE,
            metavar=SHAPE.name,
            help="Mesh in which the ranks are seen, row by row"
            "  [default: the topology's, or near a square].",
        ),
    )
