"""`collwise lab`: a command on emulated hosts."""

import sys
from pathlib import Path
from typing import Literal, NoReturn

import click

from collwise.cli import output
from collwise.cli.parameter_types import BUDGET, FILE, POSITIVE, RANKS_PER_HOST
from collwise.errors import InvalidArgument
from collwise.system.launcher import ended_by_signals, launched

_HOSTS, _LATENCY, _RATE = 8, "5ms", "10mbit"


@click.command("lab", context_settings={"allow_interspersed_args": False})
@click.option("--hosts", type=POSITIVE, help=f"How many hosts  [default: {_HOSTS}].")
@click.option("--latency", help=f"One way, such as 5ms or 200us  [default: {_LATENCY}].")
@click.option("--rate", help=f"Of each host's port, such as 10mbit  [default: {_RATE}].")
@click.option(
    "--network",
    "network_path",
    type=FILE,
    help="A TOML file with groups of hosts, and links between them, instead.",
)
@click.option("--ranks", "-n", type=POSITIVE, help="Ranks in all  [default: all hosts full].")
@click.option(
    "--ranks-per-host",
    type=RANKS_PER_HOST,
    help="Ranks on each host, or of the first, the second, … host: 5+3+8  [default: 1].",
)
@click.option(
    "--mpi",
    type=click.Choice(["mpich", "openmpi", "none"]),
    help="Whose launcher; none: run it once, on the first host  [default: what is installed].",
)
@click.option("--addresses", help="Address range of the hosts  [default: a free one].")
@click.option("--timeout", type=BUDGET, help="Seconds at most.")
@output.json_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGUMENTS]...")
def command(
    hosts: int | None,
    latency: str | None,
    rate: str | None,
    network_path: Path | None,
    ranks: int | None,
    ranks_per_host: int | tuple[int, ...] | None,
    mpi: Literal["mpich", "openmpi", "none"] | None,
    addresses: str | None,
    timeout: float | None,
    as_json: bool,
    words: tuple[str, ...],
) -> NoReturn:
    """Run a command on emulated hosts with a chosen latency and rate, and ranks on each.

    \b
        collwise lab --hosts 16 --latency 5ms --rate 10mbit -- python prog.py
        collwise lab --hosts 16 -- collwise tune --budget 60

    Real MPI over real TCP, on this machine alone; it needs root and /dev/net/tun.  The exit code is
    the command's.  How well the emulated network kept time is reported on standard error; with
    --json, in the one document on standard output, which also holds what the command printed there.
    """  # noqa: D301
    from collwise.lab import Cluster

    if (outside := launched()) is not None and outside.size > 1:
        seen = f"{outside.launcher} has started this command {outside.size} times"
        raise InvalidArgument(
            "a lab", seen, "start it once: a lab starts ranks itself, on its hosts"
        )
    if mpi == "none" and (ranks, ranks_per_host) != (None, None):
        raise click.UsageError("it runs once with --mpi none: leave --ranks[-per-host] out")
    if network_path is None:
        rooms = ranks_per_host if isinstance(ranks_per_host, tuple) else ()
        hosts = hosts or len(rooms) or _HOSTS
        latency, rate = latency or _LATENCY, rate or _RATE
    cluster = Cluster(hosts, latency, rate, network=network_path, mpi=mpi, addresses=addresses)
    cluster.check(words, ranks, ranks_per_host)
    with ended_by_signals(), cluster:
        finished = cluster.run(
            words,
            ranks,
            ranks_per_host=ranks_per_host,
            timeout_s=timeout,
            capture="stdout" if as_json else False,
        )
    if as_json:
        report = finished.report.document()
        document = {"exit_code": finished.code, "report": report, "stdout": finished.stdout}
        output.write_json(document)
    else:
        output.write(*finished.report.lines(), stream="err")
    sys.exit(finished.code)
