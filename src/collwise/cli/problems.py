"""Options about what is planned and raced, shared by commands."""

from typing import Any

import click

from collwise.errors import UnknownName

op_option = click.option(
    "--op",
    default="sum",
    show_default=True,
    help="Operator of a reduce or an allreduce: sum, max, noncommutative, …",
)
dtype_option = click.option(
    "--dtype",
    default="float64",
    show_default=True,
    help="Type of the elements that are combined, as NumPy names it.",
)
root_option = click.option(
    "--root", type=int, default=0, show_default=True, help="Rank that sends, or gets the result."
)


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
        if names == ["all"]:
            return collectives()
        for name in names:
            if name not in collectives():
                raise UnknownName.of("collective", name, collectives())
        if not names:
            self.fail("give at least one collective", param, ctx)
        return tuple(dict.fromkeys(names))


COLLECTIVES = Collectives()
