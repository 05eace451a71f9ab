"""Simulations as a table, as lines of text on one of them, and as a JSON document."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.exact import seconds
from collwise.planner.plans import ORDER_WORDS, source_lines
from collwise.report.plan_document import notes, problem_document
from collwise.report.tables import Table, attributes
from collwise.system import formatting
from collwise.tuning.simulations import LinkLoad, Simulation

MAX_FINISHES = 4096
"""The finishing times of up to this many ranks are listed one by one."""
MAX_TRANSFERS = 1 << 16
"""Up to this many messages are listed one by one."""
MAX_LINKS_NAMED = 4


def heading(first: Simulation, origin: str, reason: str = "") -> list[str]:
    """Lines on problem and machine.

    origin: where the machine comes from.   reason: why contributions are combined in this order.
    """
    trace, problem = first.trace, first.problem
    lines = [str(problem), *source_lines(problem)]
    if reason:
        lines.append(f"order        {ORDER_WORDS[problem.order]}: {reason}")
    lines.append(f"machine      {trace.machine.describe()} ({origin})")
    lines += [f"note         {note}" for note in notes(problem, trace.machine)]
    if trace.topology is not None:
        lines.append(f"topology     {trace.topology.describe()}")
    return lines


def simulation_lines(simulation: Simulation) -> list[str]:
    """Lines on one simulation: its algorithm, times, messages, and links if it has any."""
    trace, traffic = simulation.trace, simulation.traffic
    sizes = f"{traffic.least:,}" + f" to {traffic.most:,}" * (traffic.most > traffic.least)
    lines = [
        f"algorithm    {simulation.label}",
        f"             {ALGORITHMS[simulation.name].summary}",
        f"complete     after {formatting.time(trace.completion)}{_against_bound(simulation)}",
        bound_line(simulation),
        ranks_line(trace.finish_s),
        f"messages     {traffic.messages:,} of {sizes} bytes; {traffic.nbytes:,} bytes in all",
    ]
    if simulation.linked:
        waits, loads = simulation.waits, simulation.loads
        waiting = "no message waited for a link"
        if waits.messages:
            waiting = (
                f"{waits.messages:,} of {formatting.count(traffic.messages, 'message')} waited for"
                f" links, {formatting.time(waits.longest)} at most,"
                f" {formatting.time(waits.total)} in all"
            )
        busiest = ", ".join(map(_load, loads[:MAX_LINKS_NAMED]))
        lines += [
            f"waiting      {waiting}",
            f"links        {len(loads):,} used; the busiest: {busiest}",
        ]
    return lines


def ranks_line(finish_s: Sequence[float]) -> str:
    """A line on which ranks are done first and last.   finish_s: by rank, in seconds."""
    first, last = (pick(range(len(finish_s)), key=finish_s.__getitem__) for pick in (min, max))
    return (
        f"ranks        the first is done after {formatting.time(finish_s[first])} (rank {first}),"
        f" the last after {formatting.time(finish_s[last])} (rank {last})"
    )


def bound_line(simulation: Simulation) -> str:
    """A line on the time that no schedule can beat, and why."""
    return f"lower bound  {formatting.time(simulation.bound.time)}  ({simulation.bound.argument})"


def comparison_table(simulations: Sequence[Simulation]) -> Table:
    """The table of simulations: a row for every algorithm, in the order given."""
    linked = any(simulation.linked for simulation in simulations)
    rows = []
    for simulation in simulations:
        row = {
            "algorithm": simulation.label.partition("/")[2],
            "time": formatting.time(simulation.trace.completion),
            "over the bound": formatting.significant(_ratio(simulation))
            if simulation.bound.time
            else "-",
            "messages": f"{simulation.traffic.messages:,}",
            "bytes sent": f"{simulation.traffic.nbytes:,}",
        }
        if linked:
            row["waited for links"] = formatting.time(simulation.waits.total)
            row["busiest link"] = _load(simulation.loads[0]) if simulation.loads else "-"
        rows.append(row)
    return Table("", rows, ("waited for links", "bytes sent", "over the bound", "messages"))


def simulation_document(
    simulations: Sequence[Simulation],
    excluded: Mapping[str, str],
    origin: str,
    reason: str = "",
) -> dict[str, Any]:
    """Simulations of one problem as a JSON document, times in seconds.

    A single simulation has its messages one by one, unless they are more than MAX_TRANSFERS.
    excluded: why algorithms are missing, by name.   origin: where the machine comes from.   reason:
    why contributions are combined in this order.
    """
    first = simulations[0]
    trace = first.trace
    documents = [_document(simulation) for simulation in simulations]
    if len(simulations) == 1:
        few = first.traffic.messages <= MAX_TRANSFERS
        documents[0]["transfers"] = _transfers(first) if few else None
    return {
        **problem_document(first.problem, trace.machine, trace.topology, origin, reason),
        "lower_bound_s": first.bound.time_s,
        "lower_bound": first.bound.argument,
        "simulations": documents,
        "excluded": dict(excluded),
    }


def _document(simulation: Simulation) -> dict[str, Any]:
    trace, traffic, waits = simulation.trace, simulation.traffic, simulation.waits
    return {
        "algorithm": simulation.name,
        "settings": {name: str(value) for name, value in simulation.settings.items()},
        "completion_s": trace.completion_s,
        "first_s": min(trace.finish_s),
        "messages": traffic.messages,
        "bytes_sent": traffic.nbytes,
        "waits": {"messages": waits.messages, **_in_seconds(waits, "total", "longest")},
        "links": [
            {
                "link": load.link,
                "from": load.source,
                "to": load.target,
                "busy_s": seconds(load.busy),
                "share": load.share,
            }
            for load in simulation.loads
        ],
        "finish_s": list(trace.finish_s) if len(trace.finish_s) <= MAX_FINISHES else None,
    }


def _transfers(simulation: Simulation) -> list[dict[str, Any]]:
    """Every message as JSON; with links, also its passage through the network."""
    transfers = []
    trace = simulation.trace
    for transfer, passage in zip_longest(trace.transfers, trace.passages):
        document = attributes(transfer, "source", "target", "nbytes")
        document |= _in_seconds(transfer, "start", "sent", "received")
        if passage is not None:
            waited = passage.waited
            document |= {
                **_in_seconds(passage, "ready", "entry", "header"),
                "links": list(passage.route),
                "waited_for": waited and {"link": waited.link, "held_by": waited.transfer},
            }
        transfers.append(document)
    return transfers


def _in_seconds(times: object, *names: str) -> dict[str, float]:
    """The attributes `names` of `times`, exact times, as floats; their keys end in _s."""
    return {f"{name}_s": seconds(getattr(times, name)) for name in names}


def _against_bound(simulation: Simulation) -> str:
    if not simulation.bound.time:
        return ""
    if simulation.trace.completion == simulation.bound.time:
        return ": nothing can be faster"
    return f", {formatting.significant(_ratio(simulation))} times the lower bound"


def _ratio(simulation: Simulation) -> float:
    return float(simulation.trace.completion / simulation.bound.time)


def _load(load: LinkLoad) -> str:
    """A link as text, with the share of the time in which it was busy."""
    return f"{load.source} → {load.target} ({load.share:.0%})"
