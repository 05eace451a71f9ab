"""Proves a schedule right, whoever made it, or explains the first thing that is wrong with it.

Read in this order: `promises` (what is right), `flow` (partners, and what is held), `progress` (no
deadlock), `contributions` (of what it is combined), `ports` and `links` (in ideal time no rank does
two things at once, no link carries two messages); `atlas` and `words` serve them.  Nothing here
knows an algorithm, or takes anything over from the timing engine: that is checked too.
"""

from fractions import Fraction

from collwise.errors import InvalidSchedule
from collwise.model.machine import Machine
from collwise.model.topology import Topology
from collwise.schedule.collectives import find_collective
from collwise.schedule.program import Schedule, Written
from collwise.timing import check_simulable, ideal
from collwise.verifier.contributions import check_contributions
from collwise.verifier.dataflow import check_holdings, check_operations, check_partners
from collwise.verifier.deadlock import check_progress
from collwise.verifier.partition import Partition
from collwise.verifier.port_rules import check_ports
from collwise.verifier.postconditions import Postcondition, postcondition

__all__ = ["Postcondition", "check_flow", "check_ports", "postcondition", "verify"]

ASSUMED = tuple(Machine.postal(t0_s=1, lam=lam) for lam in (1, Fraction(9, 5)))
"""The machines whose ports are watched if none is given."""


def verify(
    schedule: Schedule, machine: Machine | None = None, topology: Topology | None = None
) -> None:
    """Prove that a schedule keeps its collective's promise; return if so.

    Checks the flow of the data (`check_flow`), and then, on `machine` (or else on postal machines
    with λ = 1 and 9/5), that nobody sends or receives two messages at once (`check_ports`); and, on
    a topology, which needs a machine that has links, that no link carries two at once.
    Raises InvalidSchedule for the first violation, with rank, step and block; UnknownName for a
    collective that is not in the table; InvalidArgument for a topology of another size, or on
    a machine that has no links.
    """
    machines = ASSUMED if machine is None else (machine,)
    check_simulable("a proof of a schedule", schedule, machines[0], topology)
    check_flow(schedule)
    for assumed in machines:
        check_ports(schedule, ideal(schedule, assumed, topology), assumed, topology)


def check_flow(schedule: Schedule) -> None:
    """Prove all that needs no machine: partners, data and progress.

    Every message has its partner with the same blocks; what is sent is held; nothing is received
    twice; what is owed is there in the end, made of every contribution once and in the order that
    the problem promises, no element cut; no deadlock, under buffered and under blocking sends.
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
    promises = [postcondition(problem, rank) for rank in range(problem.ranks)]
    combined = problem.kind.combines
    check_operations(lists, problem.itemsize if combined else 1)
    check_partners(lists)
    atlas = Partition(lists, promises)
    check_holdings(lists, promises, atlas)
    check_progress(lists, atlas)
    if combined:
        check_contributions(lists, problem, promises, atlas)
