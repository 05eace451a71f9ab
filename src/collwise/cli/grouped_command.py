"""Commands with many options: grouped help, options as one argument, errors for missing ones."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click
from click.core import ParameterSource

_WRITTEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


class _Grouped(click.Option):
    """An option that the help shows under the heading `group`."""

    def __init__(self, *arguments: Any, group: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


def grouped(group: str) -> Any:
    """`click.option` for options that the help shows under the heading `group`."""
    return partial(click.option, cls=_Grouped, group=group)


def all_of(*options: Any) -> Callable[[Any], Any]:
    """A decorator that adds several options, in the given order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def gathered(
    name: str, make: Callable[[dict[str, Any]], Any], *options: Any
) -> Callable[[Any], Any]:
    """A decorator that adds options, whose values the command gets as one argument.

    name: the argument's name.   make: gets a dictionary of all options' values, removes the values
    that it uses, and returns the argument's value.
    """

    def add(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def run(**values: Any) -> Any:
            value = make(values)
            return command(**{name: value}, **values)

        return all_of(*options)(run)

    return add


def said(*names: str) -> list[str]:
    """Which of the parameters `names` the user gave, as users type them, such as --bytes."""
    ctx = click.get_current_context()
    return [
        param.opts[0] if isinstance(param, click.Option) else (param.name or "").upper()
        for param in ctx.command.get_params(ctx)
        if param.name in names and ctx.get_parameter_source(param.name) in _WRITTEN
    ]


class GroupedCommand(click.Command):
    """A command with options in groups; one error names all missing options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as first:
            values, *_ = self.make_parser(ctx).parse_args(typed)
            missing = [p for p in self.get_params(ctx) if p.required and p.name not in values]
            if len(missing) < 2:
                raise
            *names, last = (param.get_error_hint(ctx) for param in missing)
            message = f"Missing options {', '.join(names)} and {last}."
            raise click.UsageError(message, ctx) from first

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
