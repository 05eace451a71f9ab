"""`collwise measure`: t0 and λ of this machine."""

from collections.abc import Sequence
from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.parameter_types import BUDGET, SIZES
from collwise.cli.profile_option import save, save_option
from collwise.cli.start_ranks import on_ranks


@click.command("measure")
@click.option(
    "--budget",
    type=BUDGET,
    default=20.0,
    show_default=True,
    help="Seconds to measure at most.",
)
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default=None,
    help="Message sizes, comma-separated  [default: 8 B to 1 MiB].",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of targets and order.")
@save_option
@output.json_option
@on_ranks(lambda options: options["budget"])
def command(
    budget: float,
    sizes: Sequence[int] | None,
    seed: int,
    save_path: Path | None,
    as_json: bool,
) -> None:
    """Measure t0 and λ over message sizes, by both experiments, and save the profile.

    t0 is how long a send keeps its sender busy; a message arrives λ·t0 after its send began.
    """
    from collwise.mpi.bench.measuring import run_campaign
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.private_communicator import PrivateCommunicator
    from collwise.mpi.runtime.world import describe, world
    from collwise.report.tuning_tables import (
        MEASURED_SPARE,
        combining_rows,
        line_rows,
        measured_rows,
    )

    comm = world()
    here = describe(comm)
    channel = PrivateCommunicator(comm)
    beginning = f"measuring t0 and λ on {comm.size} ranks for at most {budget:g} s"
    with output.progress(as_json or comm.rank > 0, beginning) as progress:
        profile = run_campaign(
            channel.comm,
            here,
            budget_s=budget,
            sizes=sizes,
            seed=seed,
            report=lambda done: progress("measuring t0 and λ", done),
        )
    channel.free()

    def finish() -> None:
        saved = save(profile, save_path)
        if as_json:
            lines = [line._asdict() for line in profile.machine.lines()]
            document = {"profile": profile.to_document(), "hockney": lines}
            output.write_json({"profile_path": str(saved), **document})
            return
        title = f"t0 and λ on {comm.size} ranks, {here.library}"
        output.table(title, *measured_rows(profile), MEASURED_SPARE)
        output.table("The time until it is received, as α + nβ", *line_rows(profile))
        output.table("Combining, on the slowest rank", *combining_rows(profile))
        output.write(f"verdict  {profile.verdict}")
        output.write(*(f"advice   {line}" for line in profile.advice), f"profile  {saved}")

    on_root(comm, finish, takes_long=True)
