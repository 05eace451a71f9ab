"""Simulations for people and for programs: the table, the lines about one of them, JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from collwise.algorithms.registry import ALGORITHMS
from collwise.model.exact import seconds
from collwise.planner.plans import ORDER_WORDS, source_lines
from collwise.report.tuning_tables import Rows, question_document
from collwise.system import formatting
from collwise.timing import Transfer
from collwise.tuning.simulations import Load, Simulation

SPARE = ("waited for links", "bytes sent", "over the bound", "messages")
"""Columns of the table without which it can still be read, the first to go first."""
MOST_FINISHES = 4096
"""Ranks whose times of finishing are told one by one."""
MOST_TRANSFERS = 1 << 16
"""Messages that are told one by one."""
BUSIEST = 4
"""Links that are named."""


def heading(first: Simulation, origin: str, reason: str = "") -> list[str]:
    """What was simulated, on which machine."""
    trace, problem = first.trace, first.problem
    lines = [str(problem), *source_lines(problem)]
    if reason:
        lines.append(f"order        {ORDER_WORDS[problem.order]}: {reason}")
    lines.append(f"machine      {trace.machine.describe()} ({origin})")
    if trace.topology is not None:
        lines.append(f"topology     {trace.topology.describe()}")
    return lines


def lines(simulation: Simulation) -> list[str]:
    """What one schedule did."""
    trace, traffic = simulation.trace, simulation.traffic
    finish = trace.finish_s
    first = min(range(len(finish)), key=finish.__getitem__)
    last = max(range(len(finish)), key=finish.__getitem__)
    sizes = f"{traffic.least:,}" + f" to {traffic.most:,}" * (traffic.most > traffic.least)
    told = [
        f"algorithm    {simulation.label}",
        f"             {ALGORITHMS[simulation.name].summary}",
        f"complete     after {formatting.time(trace.completion)}{_over(simulation)}",
        bound_line(simulation),
        f"ranks        the first is done after {formatting.time(finish[first])} (rank {first}),"
        f" the last after {formatting.time(finish[last])} (rank {last})",
        f"messages     {traffic.messages:,} of {sizes} bytes; {traffic.nbytes:,} bytes in all",
    ]
    if simulation.linked:
        waits, loads = simulation.waits, simulation.loads
        text = "no message waited for a link"
        if waits.messages:
            text = (
                f"{waits.messages:,} of {formatting.count(traffic.messages, 'message')} waited for"
                f" links, {formatting.time(waits.longest)} at most,"
                f" {formatting.time(waits.total)} in all"
            )
        busiest = ", ".join(_load(simulation, load) for load in loads[:BUSIEST])
        told += [
            f"waiting      {text}",
            f"links        {len(loads):,} used; the busiest: {busiest}",
        ]
    return told


def bound_line(simulation: Simulation) -> str:
    """What no schedule can beat, and why."""
    return f"lower bound  {formatting.time(simulation.bound.time)}  ({simulation.bound.argument})"


def rows(simulations: Sequence[Simulation]) -> Rows:
    """A row for every algorithm, the fastest first."""
    linked = any(simulation.linked for simulation in simulations)
    titles = ["algorithm", "time", "over the bound", "messages", "bytes sent"]
    if linked:
        titles += ["waited for links", "busiest link"]
    found = []
    for one in simulations:
        row = [
            one.label.partition("/")[2],
            formatting.time(one.trace.completion),
            formatting.significant(_ratio(one)) if one.bound.time else "-",
            f"{one.traffic.messages:,}",
            f"{one.traffic.nbytes:,}",
        ]
        if linked:
            row.append(formatting.time(one.waits.total))
            row.append(_load(one, one.loads[0]) if one.loads else "-")
        found.append(row)
    return titles, found


def document(
    simulations: Sequence[Simulation],
    excluded: Mapping[str, str],
    origin: str,
    reason: str = "",
) -> dict[str, Any]:
    """Everything as JSON, times in seconds; messages one by one if one schedule was simulated."""
    first = simulations[0]
    trace = first.trace
    one = len(simulations) == 1
    return {
        **question_document(first.problem, trace.machine, trace.topology, origin, reason),
        "lower_bound_s": first.bound.time_s,
        "lower_bound": first.bound.argument,
        "simulations": [_simulation(simulation, one) for simulation in simulations],
        "excluded": dict(excluded),
    }


def _simulation(simulation: Simulation, everything: bool) -> dict[str, Any]:
    trace, traffic, waits = simulation.trace, simulation.traffic, simulation.waits
    found = {
        "algorithm": simulation.name,
        "settings": {name: str(value) for name, value in simulation.settings.items()},
        "completion_s": trace.completion_s,
        "first_s": min(trace.finish_s),
        "messages": traffic.messages,
        "bytes_sent": traffic.nbytes,
        "waits": {
            "messages": waits.messages,
            "total_s": seconds(waits.total),
            "longest_s": seconds(waits.longest),
        },
        "links": [
            {
                "link": load.link,
                "from": load.source,
                "to": load.target,
                "busy_s": seconds(load.busy),
                "share": simulation.share(load),
            }
            for load in simulation.loads
        ],
        "finish_s": list(trace.finish_s) if len(trace.finish_s) <= MOST_FINISHES else None,
    }
    if everything:
        told = traffic.messages <= MOST_TRANSFERS
        found["transfers"] = _transfers(simulation) if told else None
    return found


def _transfers(simulation: Simulation) -> list[dict[str, Any]]:
    trace = simulation.trace
    if not trace.passages:
        return [_in_time(transfer) for transfer in trace.transfers]
    both = zip(trace.transfers, trace.passages, strict=True)
    return [
        {
            **_in_time(transfer),
            "ready_s": seconds(passage.ready),
            "entry_s": seconds(passage.entry),
            "header_s": seconds(passage.header),
            "links": list(passage.route),
            "waited_for": None
            if passage.waited is None
            else {"link": passage.waited.link, "held_by": passage.waited.transfer},
        }
        for transfer, passage in both
    ]


def _in_time(t: Transfer) -> dict[str, Any]:
    return {
        "source": t.source,
        "target": t.target,
        "nbytes": t.nbytes,
        "start_s": seconds(t.start),
        "sent_s": seconds(t.sent),
        "received_s": seconds(t.received),
    }


def _over(simulation: Simulation) -> str:
    if not simulation.bound.time:
        return ""
    if simulation.trace.completion == simulation.bound.time:
        return ": nothing can be faster"
    return f", {formatting.significant(_ratio(simulation))} times the lower bound"


def _ratio(simulation: Simulation) -> float:
    return float(simulation.trace.completion / simulation.bound.time)


def _load(simulation: Simulation, load: Load) -> str:
    """A link, and the share of the time in which it was busy."""
    return f"{load.source} → {load.target} ({simulation.share(load):.0%})"
