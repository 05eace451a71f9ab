"""`collwise tune`: the main job."""

from collections.abc import Sequence
from pathlib import Path

import click

from collwise.cli import output
from collwise.cli.collective_options import (
    COLLECTIVES,
    USUAL_SOURCES,
    Sources,
    check_options,
    chosen_sources,
    dtype_option,
    op_option,
    root_option,
    sources_options,
)
from collwise.cli.option_groups import Command
from collwise.cli.parameter_types import BUDGET, SIZES, writable
from collwise.cli.profile_option import save, save_option
from collwise.cli.start_ranks import on_ranks
from collwise.planner.operator_order import DTYPE, OP


@click.command("tune", cls=Command)
@click.option(
    "--budget",
    type=BUDGET,
    default=32.0,
    show_default=True,
    help="Seconds for measuring and racing together.",
)
@click.option(
    "--bytes",
    "sizes",
    type=SIZES,
    default="8,512,4096,65536,1048576",
    show_default=True,
    help="Sizes to plan and race, comma-separated; of s_to_p, of each source's contribution.",
)
@click.option(
    "--collective",
    "collectives",
    type=COLLECTIVES,
    default="all",
    show_default=True,
    help="What to plan and race: broadcast,reduce,allreduce,s_to_p or some of them.",
)
@root_option
@op_option
@dtype_option
@click.option("--seed", type=int, default=0, show_default=True, help="Of targets and order.")
@click.option(
    "--report",
    "report_path",
    type=click.Path(path_type=Path),
    callback=writable,
    default=Path("collwise-report.html"),
    show_default=True,
    help="Where to write the HTML report; missing folders are made.",
)
@save_option
@output.json_option
@sources_options(USUAL_SOURCES)
@on_ranks(
    lambda options: options["budget"],
    lambda options: check_options(options["collectives"], options),
)
def command(
    budget: float,
    sizes: Sequence[int],
    collectives: Sequence[str],
    root: int,
    op: str | None,
    dtype: str | None,
    sources: Sources | None,
    pattern: str | None,
    shape: tuple[int, int] | None,
    seed: int,
    report_path: Path,
    save_path: Path | None,
    as_json: bool,
) -> None:
    """Measure this machine, plan collectives, race them against the library's own, report.

    Saves a profile (what was measured, and which races were won) that collwise.Comm finds again,
    and writes one self-contained HTML page.

    \b
        collwise tune
        collwise tune -n 8 --collective broadcast --bytes 512,2k --budget 10
        collwise tune --collective s_to_p --pattern equal --sources 3
        mpiexec -n 64 collwise tune --report big/report.html
    """  # noqa: D301
    from collwise.mpi.runtime.agreement import on_root
    from collwise.mpi.runtime.world import describe, world
    from collwise.report.tuning_tables import SPARE, document, rows, summary
    from collwise.tuning.session import Task, tune

    comm = world()
    given = chosen_sources(comm.size, sources, pattern, shape)
    tasks = [
        Task.of(
            collective,
            nbytes,
            root,
            op or OP,
            dtype or DTYPE,
            ranks=comm.size,
            round_up=True,
            sources=given,
            shape=shape,
        )
        for collective in collectives
        for nbytes in sizes
    ]
    here = describe(comm)
    beginning = f"measuring and racing on {comm.size} ranks for about {budget:g} s"
    with output.progress(as_json or comm.rank > 0, beginning) as progress:
        found = tune(comm, here, tasks, budget_s=budget, seed=seed, progress=progress)

    def finish() -> None:
        from collwise.report.html_report import report

        saved = save(found.profile, save_path)
        written = report(found, report_path)
        if as_json:
            output.write_json(
                {**document(found), "profile_path": str(saved), "report_path": str(written)}
            )
            return
        output.table(f"{comm.size} ranks, {here.library}", *rows(found), SPARE)
        output.write(*summary(found), f"profile  {saved}", f"report   {written}")

    on_root(comm, finish, takes_long=True)
