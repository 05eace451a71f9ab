"""Options about what is planned, raced and simulated, shared by commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from collwise.cli.option_groups import grouped
from collwise.cli.parameter_types import SHAPE, SIZE
from collwise.errors import InvalidArgument, UnknownName
from collwise.model.sources import DISTRIBUTIONS, distribute
from collwise.model.topology import near_square
from collwise.planner.operator_order import DTYPE, OP
from collwise.schedule.collectives import ABOUT, check_about, find_collective
from collwise.schedule.problem import ORDERS

USUAL_SOURCES = "every fourth rank, but at least two"
"""What races take if nobody says."""
MOST_SOURCES = 1 << 20
"""Ranks in a list on the command line."""
MOST_PLAYED = 1 << 20
"""Ranks times sources: an s-to-p broadcast has to be played, and each rank gets every source's."""

_ABOUT = {**ABOUT, "pattern": ABOUT["sources"]}
"""By option, the collectives about which it says something."""

bytes_option = click.option(
    "--bytes",
    "nbytes",
    type=SIZE,
    required=True,
    help="Bytes, such as 512 or 64k: of the message, of everybody's vector, or of each source's"
    " contribution.",
)
root_option = click.option(
    "--root", type=int, default=0, show_default=True, help="Rank that sends, or gets the result."
)
op_option = click.option(
    "--op",
    help=f"Operator of a reduce or an allreduce: sum, max, noncommutative, …  [default: {OP}]",
)
dtype_option = click.option(
    "--dtype",
    help=f"Type of the elements that are combined, as NumPy names it  [default: {DTYPE}]",
)
order_option = click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="Combine in this order at least (rank: that of the ranks)  [default: what is legal].",
)


class Sources(NamedTuple):
    """What --sources says: some ranks, all of them, or how many."""

    ranks: tuple[range, ...] = ()
    number: int | None = None
    every: bool = False


class _SourcesType(click.ParamType[Sources]):
    """Ranks (0,5,9 or 0-7,12 or 5, for one), a number of them (5), or all."""

    name = "RANKS|NUMBER|all"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sources:
        """Read sources; a usage error for what is neither a list nor a number."""
        if isinstance(value, Sources):
            return value
        text = value.strip()
        if text.lower() == "all":
            return Sources(every=True)
        if re.fullmatch("[0-9]{1,10}", text):
            return Sources(number=int(text))
        found = []
        for piece in text.removesuffix(",").split(","):
            ends = re.fullmatch(r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10}))?\s*", piece)
            if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
                self.fail(
                    f"{piece.strip() or value!r} is neither a rank nor some of them; give a list"
                    " such as 0,5,9 or 0-7,12 (one rank: 5,), a number and --pattern, or all",
                    param,
                    ctx,
                )
            found.append(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
        if (count := sum(map(len, found))) > MOST_SOURCES:
            self.fail(f"{count} ranks are too many for a list; give at most {MOST_SOURCES}")
        return Sources(tuple(found))


def _known(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    if name is not None and (name := name.replace("-", "_")) not in DISTRIBUTIONS:
        raise UnknownName.of("source distribution", name, DISTRIBUTIONS)
    return name


def sources_options(usual: str = "") -> Callable[[Any], Any]:
    """The options --sources, --pattern and --shape.  usual: who has data if nobody says."""
    option = grouped("S-to-p broadcasts")
    usually = f"  [default: {usual}]" * bool(usual)

    def add(command: Any) -> Any:
        for made in (
            option(
                "--shape",
                type=SHAPE,
                metavar=SHAPE.name,
                help="Mesh in which the ranks are seen, row by row"
                "  [default: the topology's, or near a square].",
            ),
            option(
                "--pattern",
                metavar="NAME",
                callback=_known,
                help=f"So many sources in this pattern of the mesh: {', '.join(DISTRIBUTIONS)}.",
            ),
            option(
                "--sources",
                type=_SourcesType(),
                metavar=_SourcesType.name,
                help="Ranks that have data: 0,5,9 or 0-7,12 (one rank: 5,), or all; or their"
                f" number, with --pattern{usually}.",
            ),
        ):
            command = made(command)
        return command

    return add


def check_options(collectives: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other, or say nothing about any of the collectives.

    options: by name; None, or 0, where one was not given.   Raises InvalidArgument.
    """
    check_about(collectives, [name for name in _ABOUT if options.get(name)], _ABOUT, "--")
    sources, pattern = options.get("sources"), options.get("pattern")
    if sources is None and pattern is None:
        return
    asked = "the sources of an s-to-p broadcast"
    if sources is None:
        seen, remedy = f"--pattern {pattern} without a number", "add --sources NUMBER"
    elif pattern is not None and sources.number is None:
        seen = f"a list of ranks, and --pattern {pattern}"
        remedy = "give the list alone, or a number of sources and the pattern"
    elif pattern is None and sources.number is not None:
        seen = f"--sources {sources.number}, without a pattern"
        remedy = (
            f"add --pattern equal (or another), or write --sources {sources.number}, for a rank"
        )
    else:
        return
    raise InvalidArgument(asked, seen, remedy)


def chosen_sources(
    ranks: int,
    sources: Sources | None,
    pattern: str | None,
    shape: tuple[int, int] | None,
) -> tuple[int, ...] | None:
    """The ranks that options (which `check_options` has passed) name; None if they name none.

    shape: the mesh; near a square if not given.   Raises InvalidArgument for more sources than it
    has ranks, and for an s-to-p broadcast that is too large to be played.
    """
    if sources is None:
        return None
    listed = ranks if sources.every else sum(map(len, sources.ranks))
    count = listed if sources.number is None else sources.number
    if ranks * max(count, 1) > MOST_PLAYED:
        raise InvalidArgument(
            f"an s-to-p broadcast over {ranks} ranks from {count} sources",
            "its schedules have to be played, message by message",
            f"give ranks times sources of at most {MOST_PLAYED}",
        )
    if sources.every:
        return tuple(range(ranks))
    if sources.number is None or pattern is None:
        return tuple(rank for some in sources.ranks for rank in some)
    return distribute(pattern, shape or near_square(ranks), sources.number)


class Collectives(click.ParamType[tuple[str, ...]]):
    """A comma-separated list of collectives; "all" for all of them."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read a list.  Raises UnknownName for one that is none, with the near ones."""
        from collwise.algorithms.registry import collectives

        if isinstance(value, tuple):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        if [name.lower() for name in names] == ["all"]:
            return collectives()
        if not names:
            self.fail("give at least one collective", param, ctx)
        return tuple(dict.fromkeys(find_collective(name).name for name in names))


COLLECTIVES = Collectives()
