"""`collwise plan`: what would be chosen, and why.  Needs no MPI."""

from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.problems import dtype_option, op_option, root_option
from collwise.cli.profiles import machine_from, profile_option
from collwise.cli.values import EXACT, RANKS, SIZE
from collwise.schedule.data import ORDERS, Order


@click.command("plan")
@click.argument("collective", default="broadcast")
@click.option("-n", "--ranks", type=RANKS, required=True, help="Number of ranks.")
@click.option("--bytes", "nbytes", type=SIZE, required=True, help="Bytes, such as 512 or 64k.")
@root_option
@op_option
@dtype_option
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="Combine in this order at least (rank: that of the ranks)  [default: what is legal].",
)
@click.option("--algorithm", help="Take this algorithm, with its best settings.")
@click.option("--t0", type=EXACT, metavar="SECONDS", help="Postal machine: t0 of every message.")
@click.option("--lam", type=EXACT, metavar="λ", help="Postal machine: λ, such as 4, 1.8 or 9/5.")
@click.option("--alpha", type=EXACT, metavar="SECONDS", help="Hockney machine: start-up.")
@click.option("--beta", type=EXACT, metavar="SECONDS", help="Hockney machine: per byte.")
@click.option("--gamma", type=EXACT, metavar="SECONDS", help="Hockney machine: per combined byte.")
@click.option("--latency", type=EXACT, metavar="SECONDS", help="LogGP machine: L.")
@click.option("--overhead", type=EXACT, metavar="SECONDS", help="LogGP machine: o.")
@click.option("--gap", type=EXACT, metavar="SECONDS", help="LogGP machine: g.")
@click.option("--per-byte", type=EXACT, metavar="SECONDS", help="LogGP machine: G.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the schedule's tree and timeline into .svg or .png files (timeline: NAME-timeline).",
)
@profile_option
@output.json_option
def command(
    collective: str,
    ranks: int,
    nbytes: int,
    root: int,
    op: str,
    dtype: str,
    order: Order | None,
    algorithm: str | None,
    picture: Path | None,
    profile_path: Path | None,
    as_json: bool,
    **machine_options: Any,
) -> None:
    """Plan COLLECTIVE (broadcast, reduce, allreduce): the choice, the runners-up, the lower bound.

    The machine is a measured profile, or one described by --t0 and --lam (postal), --alpha and
    --beta (Hockney), or --latency, --overhead, --gap and --per-byte (LogGP).
    """
    from collwise.planner.choose import plan
    from collwise.tuning.reports import plan_document

    machine, origin = machine_from(machine_options, profile_path, (op, dtype))
    made = plan(
        collective,
        ranks=ranks,
        nbytes=nbytes,
        machine=machine,
        root=root,
        op=op,
        dtype=dtype,
        order=order,
        algorithm=algorithm,
    )
    drawn = None
    if picture is not None:
        from collwise.tuning.pages import draw

        drawn = draw(made, picture)
    if as_json:
        output.write_json(plan_document(made, origin))
        return
    output.write(*str(made).splitlines())
    if drawn is not None:
        output.write(f"picture      {drawn}")
