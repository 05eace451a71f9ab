"""`collwise explore`: an interactive page.  Needs no MPI."""

import click

from collwise.cli import output
from collwise.cli.parameter_types import Integer


@click.command("explore")
@click.option("--port", type=Integer(0, 65535), default=0, help="Of the page; 0: a free one.")
@click.option("--browser/--no-browser", default=True, help="Open it in a browser.")
@output.json_option
def command(port: int, browser: bool, as_json: bool) -> None:
    """Open a page with sliders for λ, ranks, bytes and sources, until interrupted.

    It draws the schedule in space and in time, and compares the times of all algorithms with the
    lower bound, also over λ.  Every picture can be saved as SVG.  It needs an extra:

    \b
        pip install 'collwise[explore]'
        collwise explore
    """  # noqa: D301
    from collwise.explore.serving import serve

    def ready(address: str) -> None:
        if as_json:
            output.write_json({"address": address})
        else:
            output.write(f"the page is at {address}; Ctrl-C ends it")

    serve(port, browser, ready)
