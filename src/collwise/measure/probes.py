"""The two experiments that are timed to measure t0 and λ [Bruck1996 §2.2].

Rank 0 is P_0; a probe names the targets P_1 … P_k.  In both experiments P_0 sends one message to
each of them in turn.  Then, as soon as P_k has its message,

1.  P_k sends one message back to P_0:               T = (k−1)·t0 + 2·λt0
2.  P_k sends to P_(k−1), …, P_1, and last to P_0:   T = 2(k−1)·t0 + 2·λt0

T is the time until P_0 has received that message, by P_0's clock.  It is linear in t0 and in λt0;
prediction, fit and tests all take the factors from `ProbeSetting.terms`.

This module sends nothing: MPI or the simulator runs a probe's operations.  On MPI, messages through
shared memory come from one buffer and go to another, again and again, as in programs and races.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import ClassVar, NamedTuple

from collwise.model.machine import Cost
from collwise.schedule.operations import Block, Operation, Recv, Send, Slot
from collwise.schedule.problem import Problem
from collwise.schedule.program import Schedule, Written

EXPERIMENTS = (1, 2)


class ProbeSetting(NamedTuple):
    """What defines a probe, except its targets; probes with equal settings are repetitions."""

    experiment: int
    nbytes: int
    k: int
    blocking: bool

    @property
    def terms(self) -> tuple[int, int]:
        """The factors (f, g) for which the experiment takes f·t0 + g·λt0."""
        return self.experiment * (self.k - 1), 2


class AnyProbe(ABC):
    """An experiment that is timed on rank 0: a small hashable object, equal on all ranks."""

    experiment: int
    nbytes: int
    k: int
    blocking: bool = False
    until_sent: ClassVar[bool] = True
    """Whether the time includes the completion of rank 0's sends."""

    @property
    def cell(self) -> ProbeSetting:
        """The probe's setting, which is the same for any choice of ranks."""
        return ProbeSetting(self.experiment, self.nbytes, self.k, self.blocking)

    @property
    @abstractmethod
    def ranks(self) -> int:
        """The number of ranks that the probe needs."""

    @abstractmethod
    def operations(self, rank: int) -> list[Operation]:
        """The operations of one rank, in order; empty for a rank that takes no part."""

    def schedule(self, ranks: int | None = None) -> Schedule:
        """The experiment as a schedule for `ranks` ranks; None: the fewest ranks that suffice."""
        count = ranks or self.ranks
        lists = tuple(tuple(self.operations(rank)) for rank in range(count))
        return Schedule(Problem("probe", count, self.nbytes), Written(lists), "probe")


@dataclass(frozen=True)
class Probe(AnyProbe):
    """One of the two experiments.

    experiment: 1 or 2.   nbytes: of every message, >= 1.   targets: the ranks P_1 … P_k, none of
    them 0; a rank may occur more than once if there are fewer than k others.   blocking: whether
    the sends are blocking (`Send`) or not (`Isend`, all completed before the clock is read).
    """

    experiment: int
    nbytes: int
    targets: tuple[int, ...]
    blocking: bool = False

    @property
    def k(self) -> int:  # type: ignore[override]
        """The number of targets."""
        return len(self.targets)

    @property
    def ranks(self) -> int:
        """The number of ranks that the probe needs: one more than the highest target."""
        return max(self.targets) + 1

    def expected(self, cost: Cost) -> Fraction:
        """The exact closed-form time in seconds if a message costs `cost`."""
        gaps, latencies = self.cell.terms
        return gaps * cost.gap + latencies * cost.latency

    def operations(self, rank: int) -> list[Operation]:
        """The operations of one rank, in order.

        P_0 sends from its input.  Every message is received into the output, so a rank's receives
        must complete in this order.  P_k never sends to itself: if it is also another target, its
        message to that target goes to P_0, and the time stays the same.
        """
        block = (Block(0, 0, self.nbytes),)
        last = self.targets[-1]
        answers = self.targets[-2::-1] if self.experiment == 2 else ()
        back: list[int] = [0 if t == last else t for t in answers] + [0]
        operations: list[Operation] = []
        if rank == 0:
            operations += [Send(target, block, Slot.INPUT) for target in self.targets]
        else:
            operations += [Recv(0, block)] * self.targets.count(rank)
        if rank == last:
            operations += [Send(target, block) for target in back]
        else:
            operations += [Recv(last, block)] * back.count(rank)
        return operations


def pick_targets(random: Random, ranks: int, k: int) -> tuple[int, ...]:
    """Random targets P_1 … P_k among the ranks 1 … ranks − 1, distinct if there are enough ranks.

    Otherwise one rank is P_k, and the other ranks repeat as P_1 … P_(k−1).  A single rank is every
    target.
    """
    others = range(1, ranks)
    if k <= len(others):
        return tuple(random.sample(others, k))
    last, *rest = random.sample(others, len(others))
    rest = rest or [last]
    return (*(rest[i % len(rest)] for i in range(k - 1)), last)


def usual_ks(ranks: int) -> tuple[int, ...]:
    """The numbers of targets to try with `ranks` ranks: 1, 2, 4 and 8, but at most ranks − 1.

    With two or three ranks it is all four, and targets repeat: fewer would show no slope.
    """
    if ranks < 4:
        return (1, 2, 4, 8)
    return tuple(sorted({min(k, ranks - 1) for k in (1, 2, 4, 8)}))


def greetings(ranks: int, nbytes: int, *, at_most: int = 256) -> Sequence[Probe]:
    """Probes that are run but not measured, because MPI libraries connect on first use.

    Each of up to `at_most` probes has a different rank as P_k, which sends to up to 15 ranks that
    follow it and to rank 0.
    """
    others = ranks - 1
    k = min(others, 16)
    return [
        Probe(2, nbytes, tuple(1 + (last + i) % others for i in range(k - 1, -1, -1)))
        for last in range(min(others, at_most))
    ]
