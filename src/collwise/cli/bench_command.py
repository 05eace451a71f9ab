"""`collwise bench`: one race with all its numbers, or a sweep of several races."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from collwise.cli import output
from collwise.cli.bench_grid import PLANNING_S, over_networks
from collwise.cli.bench_ranges import ALONE_S, EACH_S, NBYTES, GridCells, Ranges, taken_from
from collwise.cli.grouped_command import GroupedCommand, gathered
from collwise.cli.parameter_types import (
    BUDGET,
    CELLS,
    COLLECTIVES,
    COUNTS,
    EXACT,
    FILE,
    INTEGER,
    OUTPUT,
    PICTURE,
    POSITIVE,
    PRECISION,
    SIZE,
    SIZES,
    ParsedType,
)
from collwise.cli.problem_options import (
    COLLECTIVE_NAMES,
    DEFAULT_SOURCES,
    ProblemOptions,
    problem_options,
)
from collwise.cli.profile_option import profile_for, profile_option
from collwise.cli.ranks_option import on_ranks
from collwise.errors import InvalidArgument
from collwise.profiles.profile import Profile
from collwise.profiles.records import FORMS, USUAL_WITHIN, Form
from collwise.system import formatting
from collwise.system.files import read_input
from collwise.system.launcher import launched

if TYPE_CHECKING:  # the help needs no MPI
    from collwise.mpi.runtime.world import Communicator, World
    from collwise.tuning.outcomes import Outcome
    from collwise.tuning.race_records import Sweep


def _parse_order(text: str) -> Callable[[int], Sequence[int]]:
    """Read --order, `random:SEED` or a file of ranks; returns a function: ranks → their order."""
    if random := re.fullmatch("random:([0-9]{1,18})", text):
        return lambda ranks: Random(int(random[1])).sample(range(ranks), ranks)
    if text.startswith("random:"):
        seen = f"{text[7:27]!r} is no seed"
        raise InvalidArgument("a random order", seen, "give up to 18 digits, as in random:1")
    try:
        words = re.split(r"[\s,]+", read_input(Path(text)).decode(errors="replace").strip())
    except OSError as problem:
        seen = f"{text} cannot be read: {problem.strerror}"
        raise InvalidArgument("an order", seen, "name a file of ranks, or random:1") from None
    listed = [int(word) for word in words if re.fullmatch("[0-9]{1,9}", word)]

    def order(ranks: int) -> Sequence[int]:
        if sorted(listed) != list(range(ranks)) or len(words) != ranks:
            seen, remedy = f"{text} does not list each of 0 to {ranks - 1} once", "list them so"
            raise InvalidArgument(f"an order of {ranks} ranks", seen, remedy)
        return listed

    return order


def _check(options: dict[str, Any]) -> None:
    from collwise.measure.race import OWN
    from collwise.planner.by_hand import choice_named, own_choice

    raced: Ranges | GridCells = options["raced"]
    for algorithm, collective in product(options["algorithms"], raced.collectives):
        if algorithm.strip() != OWN and own_choice(collective, algorithm) is None:
            choice_named(collective, algorithm)
    options["request"].check(raced.collectives)
    record, resume = options["record_path"], options["resume"]
    if resume and record is None:
        raise click.UsageError("--resume goes on with a record: name it with --record")
    if record is not None and launched() is None:
        _earlier(record, resume)


def _earlier(record: Path, resume: bool) -> "Sweep | None":
    """The sweep that the file `record` holds, to go on with; None if it is missing or empty.

    Raises InvalidArgument if it is not empty and `resume` is false, or if it holds no sweep.
    """
    from collwise.tuning.race_records import read_sweep

    if not (record.is_file() and record.stat().st_size):
        return None
    if resume:
        return read_sweep(record)
    remedy = "add --resume to go on with it, or name another file"
    raise InvalidArgument(f"a new record {record}", "it is there already", remedy)


def _limit_s(options: dict[str, Any]) -> float:
    raced: Ranges | GridCells = options["raced"]
    each_s: float = raced.budget_s(options["budget"]) + PLANNING_S
    return raced.races * each_s + raced.measuring_s


@click.command("bench", cls=GroupedCommand)
@gathered(
    "raced",
    taken_from,
    click.option(
        "--collective",
        type=COLLECTIVES,
        metavar="TEXT",
        multiple=True,
        help=f"What to race, several with commas or all: {COLLECTIVE_NAMES}  [default: broadcast].",
    ),
    click.option(
        "--bytes",
        "sizes",
        type=SIZES,
        help="Bytes of the message, of everybody's vector, or of each source's contribution:"
        f" 512, or 8,64,1k, or from 8 to 1M by doubling, 8:1M:2  [default: {NBYTES}].",
    ),
    click.option("-b", "--minbytes", "first", type=SIZE, help="The smallest size, for --bytes."),
    click.option("-e", "--maxbytes", "last", type=SIZE, help="The largest size."),
    click.option(
        "-f", "--stepfactor", "factor", type=EXACT, help="From size to size  [default: 2]."
    ),
    click.option(
        "--on",
        "counts",
        type=COUNTS,
        help="Race on the first 2, then the first 4, … of the ranks, as in 2,4,8"
        "  [default: on all].",
    ),
    click.option(
        "--grid",
        "grid_path",
        type=FILE,
        help="Race all that this TOML file names, on the networks that it names.",
    ),
    click.option("--cells", type=CELLS, hidden=True, help="Numbers of cells, for a launch."),
    click.option("--first-launch", type=FILE, hidden=True, help="Race its winners once more."),
)
@problem_options(default_sources=DEFAULT_SOURCES)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    help="Race this algorithm: postal_tree, postal_tree(lam=3), library:NAME, or library: for all"
    " of the library's that may win; several times for several  [default: the best few].",
)
@click.option(
    "--budget",
    type=BUDGET,
    help=f"The most seconds for a race  [default: {ALONE_S:g}; of several, {EACH_S:g} for each].",
)
@click.option(
    "--precision",
    "within",
    type=PRECISION,
    default=f"{USUAL_WITHIN:.0%}",
    help="End a race once its medians are known to ± so much; 0 for never.",
)
@click.option("--repetitions", type=POSITIVE, default=1000, help="The most repetitions.")
@click.option("--seed", type=INTEGER, default=0, help="Seed of the order of the competitors.")
@click.option(
    "--order",
    "rank_order",
    type=ParsedType("FILE|random:SEED", _parse_order),
    metavar="FILE|random:SEED",
    help="Number the ranks in this order: what the file lists first is rank 0.",
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="blocking",
    help="Which form of the calls the rows of a sweep are about.  Races run all, non-blocking"
    " calls if this asks for them or there is time.",
)
@click.option("--csv", "csv_path", type=OUTPUT, help="Write a row for each race, as they come.")
@click.option("--record", "record_path", type=OUTPUT, help="Keep all samples in this JSON file.")
@click.option("--resume", is_flag=True, help="Leave out the races that the record has.")
@click.option("--picture", type=PICTURE, help="Draw times over sizes into this .svg or .png file.")
@click.option("--report", "report_path", type=OUTPUT, help="Write the sweep as an HTML page.")
@profile_option
@output.json_option
@over_networks
@on_ranks(_limit_s, _check)
def command(
    comm: "Communicator",
    here: "World",
    raced: Ranges | GridCells,
    request: ProblemOptions,
    algorithms: Sequence[str],
    budget: float | None,
    within: float,
    repetitions: int,
    seed: int,
    rank_order: Callable[[int], Sequence[int]] | None,
    form: Form,
    csv_path: Path | None,
    record_path: Path | None,
    resume: bool,
    picture: Path | None,
    report_path: Path | None,
    profile_path: Path | None,
    as_json: bool,
) -> Callable[[], None]:
    """Race collwise against the MPI library's own collective in one interleaved run.

    Competitors: mpi4py's method (Comm.Bcast, Comm.Allgatherv, …), the library's other algorithms,
    and planned schedules, as blocking calls, as persistent requests, and as non-blocking calls
    that are waited for.  The slowest rank's time counts.  Who takes 1.5 times as long as the best
    of the same form leaves early, except the library's default and its best other algorithm.

    Several sizes, collectives or numbers of ranks make a sweep: a row for each race, as it ends.
    Interrupted sweeps go on with --record FILE --resume.  --grid races on one network and placement
    after another, emulated ones among them, with one MPI library after another.

    \b
        collwise bench -n 4 --collective allreduce --bytes 64k --op max
        collwise bench -n 2 --bytes 8:1M:2 --csv sweep.csv
        collwise bench -n 8 --collective all --on 2,4,8 -b 8 -e 64k -f 8
        collwise bench -n 8 --collective allgatherv --pattern equal --sources 3
        collwise bench --grid grid.toml --record grid.json --report grid.html
        mpiexec -n 64 collwise bench --algorithm postal_tree --order random:1
    """  # noqa: D301
    from collwise.mpi.runtime.agreement import in_team, on_root
    from collwise.report.sweep_files import SweepKeeper
    from collwise.report.sweep_tables import sweep_lines
    from collwise.tuning.race_records import Sweep
    from collwise.tuning.session import Session

    algorithms = [label.strip() for label in algorithms]
    order = tuple(range(comm.size) if rank_order is None else rank_order(comm.size))
    if rank_order is not None:
        comm, here = comm.Create_group(comm.group.Incl(order)), here.part(order)
    counts, each_s, several = raced.counts or (comm.size,), raced.budget_s(budget), raced.several
    if counts[-1] > comm.size:
        seen = f"there are {formatting.count(comm.size, 'rank')}"
        raise InvalidArgument(f"races on {counts[-1]} ranks", seen, f"start -n {counts[-1]}")
    tasks = {count: raced.tasks(request, count) for count in counts}
    largest = max(task.problem.nbytes for some in tasks.values() for task in some)
    fingerprint, budget_s = here.fingerprint(), each_s * raced.races
    made = here.provenance(ranks=counts[-1], seed=seed, budget_s=budget_s)

    def begin() -> "tuple[Profile | None, Sweep]":
        sweep = Sweep(
            within=within,
            order=order,
            algorithm=", ".join(sorted({*algorithms})) or None,
            fingerprint=fingerprint,
            provenance=made,
        )
        if record_path is not None and (earlier := _earlier(record_path, resume)):
            sweep = sweep.goes_on(record_path, earlier)
        known = None if raced.measured_sizes else profile_for(fingerprint, profile_path)
        return known, sweep

    saved, sweep = on_root(comm, begin)
    named = {"record": record_path, "csv": csv_path, "picture": picture, "report": report_path}
    paths = {kind: path for kind, path in named.items() if path is not None}
    keeper = SweepKeeper(sweep, form, paths, None if as_json else _shown(raced))
    what = formatting.count(raced.races, "time") if several else str(tasks[counts[-1]][0])
    limit_s = budget_s + (0 if saved else raced.measuring_s)
    beginning = f"racing {what} on {counts[-1]} ranks for {limit_s:g} s at most"

    def measure(team: "Communicator") -> Profile:
        with Session(team, here.part(range(team.size)), seed=seed) as session:
            return session.measure(raced.measuring_s, raced.measured_sizes, largest=largest)

    def race(team: "Communicator") -> Sweep:
        world = here.part(range(team.size))
        profile = known.at(team.size, world.ranks_per_node)
        with Session(team, world, seed=seed) as session:
            for task in tasks[team.size]:
                if not on_root(team, partial(keeper.wants, task)):
                    continue
                only = on_root(team, partial(raced.only, task))
                about = task, profile, each_s, repetitions
                try:
                    outcome = session.race(*about, only or algorithms, within, form)
                except InvalidArgument:
                    if not only:
                        raise
                    # What won the first launch does not apply as this launch has measured.
                    outcome = session.race(*about, (), within, form)
                on_root(team, partial(keeper.add, outcome, here.library))
        return on_root(team, lambda: keeper.sweep)

    with output.progress(as_json or comm.rank > 0, beginning, bar=not several) as progress:
        progress("measuring t0 and λ" if saved is None else f"racing {what}", 0.1)
        known = saved or in_team(comm, range(counts[-1]), measure)
        progress(f"racing {what}", 0.5)
        for count in counts:
            sweep = in_team(comm, range(count), race)
    keeper.sweep = sweep

    def show() -> None:
        output.write(*sweep_lines(sweep, form) if several else ())
        if rank_order is not None:
            output.write("order    the ranks are numbered as --order says")
        if saved is None and raced.measured_sizes is None:
            output.write("note     no profile of this machine yet: measured for 3 s to plan with")
        output.write(*here.crowding)

    return partial(output.deliver, as_json, sweep.document, show, keeper.savings)


def _shown(raced: Ranges | GridCells) -> "Callable[[Outcome, dict[str, str], str], None]":
    """A function that prints a race when it has ended: a row of a sweep, or all its numbers."""
    from collwise.report.sweep_tables import COLUMNS
    from collwise.report.tuning_tables import race_summary, race_table

    rows = output.Rows({**COLUMNS, "collective": max(map(len, raced.collectives))})

    def show(outcome: "Outcome", row: dict[str, str], library: str) -> None:
        if raced.several:
            rows.add(row)
            return
        from collwise.planner.plans import source_lines

        problem = outcome.task.problem
        output.table(race_table(outcome, f"{problem}, {library}"))
        output.write(*source_lines(problem), *race_summary(outcome))

    return show
