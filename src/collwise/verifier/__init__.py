"""Proves that a schedule is right, or explains its first violation.

Read `dataflow` first (matching messages, and the data that every rank holds), then `deadlock`,
`contributions` (which ranks' vectors a result combines), `port_rules` and `link_rules` (no port
does two things at once, and no link carries two messages).  These modules use `partition` and
`violations`.  What a rank has at the start and must have at the end follows from the table of
collectives (`Problem.input_of`, `Problem.output_of`).  The verifier knows no algorithms.  The
verifier also checks the timing engine's results.
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
"""The machines on which `verify` checks the ports if the caller gives no machine."""
AT_PORTS = Machine.hockney(alpha_s=1, beta_s="1/100", gamma_s="1/10")
"""One more machine for collectives that combine; on it a combine keeps both ports busy."""


def verify(
    schedule: Schedule, machine: Machine | None = None, topology: Topology | None = None
) -> None:
    """Prove that a schedule does what its collective promises; raise InvalidSchedule if not.

    First the data flow is checked (`check_flow`).  Then the schedule is timed on the machine, and
    `check_ports` checks that no port sends or receives two messages at once.
    machine: None for postal machines with λ = 1 and 9/5; a schedule that combines is then also
    timed on AT_PORTS, unless its program needs posted receives.
    topology: the network, on whose links no two messages may pass at once; None for no network.
    InvalidSchedule names rank, step and block of the first violation, if it has them.  Raises
    UnknownName for an unknown collective, and InvalidArgument if schedule, machine and topology do
    not fit together, such as a topology and a machine without links.
    """
    machines = ASSUMED if machine is None else (machine,)
    check_simulable("a proof of a schedule", schedule, machines[0], topology)
    check_flow(schedule)
    waits = schedule.problem.kind.combines and not schedule.program.needs_posted_receives
    for assumed in (*machines, *([AT_PORTS] if machine is None and waits else [])):
        check_ports(schedule, ideal(schedule, assumed, topology), assumed, topology)


def check_flow(schedule: Schedule) -> None:
    """Prove what needs no machine: matching messages, data flow and progress.

    Every send has a matching receive with the same blocks.  A rank reads only data that it holds,
    and receives no data twice into a slot.  At the end every output is complete.  If the collective
    combines, an output has every contribution once, in the order that the problem promises, and no
    element is cut.  There is no deadlock, with buffered or blocking sends.  If the program needs
    posted receives, all are assumed posted at the start.   Raises InvalidSchedule and UnknownName.
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
