"""Proves that a schedule is right, whoever made it, or explains the first violation.

Read `dataflow` first (matching messages, and what every rank holds), then `deadlock`,
`contributions` (of which ranks' vectors a result is combined), `port_rules` and `link_rules` (in
ideal time no port does two things at once, and no link carries two messages).  `partition` and
`violations` serve them.  What a rank has at the start and must have in the end is derived from the
table of collectives (`Problem.input_of`, `Problem.output_of`).  Nothing here knows an algorithm,
and the timing engine is not trusted: its results are checked as well.
"""

from fractions import Fraction

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.collectives import find_collective
from collwise.schedule.program import Schedule, Written
from collwise.timing import ideal
from collwise.timing.trace import check_simulable
from collwise.verifier.contributions import check_contributions
from collwise.verifier.dataflow import check_holdings, check_operations, check_partners
from collwise.verifier.deadlock import check_progress
from collwise.verifier.partition import Partition
from collwise.verifier.port_rules import check_ports

__all__ = ["check_flow", "check_ports", "verify"]

ASSUMED = tuple(Machine.postal(t0_s=1, lam=lam) for lam in (1, Fraction(9, 5)))
"""The machines for which ports are checked if none is given."""
AT_PORTS = Machine.hockney(alpha_s=1, beta_s="1/100", gamma_s="1/10")
"""One more where vectors are combined: a combine has its place in the queues of both its ports."""


def verify(
    schedule: Schedule, machine: Machine | None = None, topology: Topology | None = None
) -> None:
    """Prove that a schedule does what its collective promises; returns if so.

    Checks the data flow (`check_flow`), and then, on `machine` (or else on postal machines with
    λ = 1 and 9/5, and if it combines on one where that takes the ports), that it completes and that
    nobody sends or receives two messages at once (`check_ports`); and, on a topology, which needs a
    machine that has links, that no link carries two at once.
    Raises InvalidSchedule for the first violation, with rank, step and block; UnknownName for a
    collective that is not in the table; InvalidArgument for a topology of another size, or on
    a machine that has no links.
    """
    machines = ASSUMED if machine is None else (machine,)
    check_simulable("a proof of a schedule", schedule, machines[0], topology)
    check_flow(schedule)
    waits = schedule.problem.kind.combines and not schedule.program.needs_posted_receives
    for assumed in (*machines, *([AT_PORTS] if machine is None and waits else [])):
        check_ports(schedule, ideal(schedule, assumed, topology), assumed, topology)


def check_flow(schedule: Schedule) -> None:
    """Prove all that needs no machine: matching messages, data flow and progress.

    Every send has its receive with the same blocks; what is sent is held; nothing is received
    twice; every output is complete in the end, combined of every contribution once and in the order
    that the problem promises, no element cut; no deadlock, with buffered and with blocking sends
    (to receives that are posted at once, where the program needs that).
    Raises as `verify` does.
    """
    problem = schedule.problem
    find_collective(problem.collective)
    if isinstance(schedule.program, Written) and len(schedule.program.lists) != problem.ranks:
        raise InvalidSchedule(
            f"{problem.collective} over {problem.ranks} ranks",
            f"{len(schedule.program.lists)} lists of operations are written",
            "write one list for every rank, an empty one where there is nothing to do",
        )
    lists = schedule.lists
    check_operations(lists, problem.itemsize if problem.kind.combines else 1)
    check_partners(lists)
    partition = Partition(lists, problem)
    check_holdings(lists, problem, partition)
    posted = schedule.program.needs_posted_receives
    check_progress(lists, schedule.dependencies, posted=posted)
    if problem.kind.combines:
        check_contributions(lists, problem, partition)
