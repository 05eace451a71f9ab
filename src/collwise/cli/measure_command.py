"""`collwise measure`: t0 and λ of this machine."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from collwise.cli import output
from collwise.cli.parameter_types import BUDGET, INTEGER, SIZES
from collwise.cli.profile_option import placement_option, save, save_option
from collwise.cli.ranks_option import Communicator, World, on_ranks
from collwise.model.placement import Placement


@click.command("measure")
@click.option("--budget", type=BUDGET, default=20.0, help="Seconds to measure at most.")
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default=None,
    help="Message sizes, comma-separated  [default: 8 B to 1 MiB].",
)
@click.option("--seed", type=INTEGER, default=0, help="Seed of targets and order.")
@placement_option
@save_option
@output.json_option
@on_ranks(lambda options: options["budget"])
def command(
    comm: Communicator,
    here: World,
    budget: float,
    sizes: Sequence[int] | None,
    seed: int,
    placement: Placement | None,
    save_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Measure t0 and λ over message sizes, by both experiments, and save the profile.

    t0 is how long a send keeps its sender busy; a message arrives λ·t0 after its send began.
    """
    from collwise.measure.stability import state_lines
    from collwise.report.tuning_tables import machine_tables
    from collwise.tuning.race_records import MEASUREMENT, VERSION
    from collwise.tuning.session import Session

    beginning = f"measuring t0 and λ on {comm.size} ranks for at most {budget:g} s"
    with (
        output.progress(as_json or comm.rank > 0, beginning) as progress,
        Session(comm, here, seed=seed, placement=placement, progress=progress) as session,
    ):
        profile = session.measure(budget, sizes)

    def document() -> dict[str, Any]:
        lines = [line._asdict() for line in profile.machine_for("nonblocking").lines()]
        header = {"format": MEASUREMENT, "version": VERSION}
        return {**header, "profile": profile.to_document(), "hockney": lines}

    def show() -> None:
        for table in machine_tables(profile, f"t0 and λ on {comm.size} ranks, {here.library}"):
            output.table(table)
        output.write(
            *state_lines(profile.measurements), *(f"advice   {line}" for line in profile.advice)
        )

    return partial(output.deliver, as_json, document, show, [partial(save, profile, save_path)])
