"""The census: every rank combines all contributions, in T_λ(p)·t0 for an integer λ [Bruck1996 §3].

All ranks do the same, relative to their own numbers.  So each combines in a different order, and
the operator's result must not depend on the order.  For λ that are not integers there are two
variants: the census for ⌈λ⌉, which delays receives, and the census for ⌊λ⌋, which delays sends.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from collwise.algorithms.broadcast.postal_tree import BY_LAM_FROM_1
from collwise.algorithms.reductions import register_combining
from collwise.algorithms.registry import Settings
from collwise.model import postal
from collwise.model.limits import MAX_SENT
from collwise.model.machine import Machine
from collwise.schedule.operations import Combine, Operation, Recv, Send, Slot, scratch
from collwise.schedule.problem import Problem
from collwise.schedule.program import Program
from collwise.schedule.rows import Class, around_a_circle

_T, _S = scratch(0), scratch(1)
"""Scratch slots for two partial results of a rank: with its own contribution, and without it."""


@dataclass(frozen=True)
class Census(Program):
    """The program of the allreduce by census.   k: the latency in t0, an integer."""

    problem: Problem
    k: int

    def classes(self) -> list[Class]:  # noqa: D102
        return [around_a_circle(self.problem.ranks)]

    def operations(self, rank: int) -> list[Operation]:  # noqa: D102
        p = self.problem.ranks
        if not (vector := self.problem.vector):
            return []
        messages = postal.census_rounds(p, self.k)
        last_use = max((m.sent for m in messages if m.state == "S"), default=0)
        events = sorted(
            [(m.sent, 1, i) for i, m in enumerate(messages)]
            + [(m.received + 1, 0, i) for i, m in enumerate(messages)]
        )  # a message received in a round may be sent on in the next round
        with_own, without = int(Slot.INPUT), -1
        operations: list[Operation] = []
        for when, sends, i in events:
            message = messages[i]
            if sends:
                value = without if message.state == "S" else with_own
                operations.append(Send((rank - message.shift) % p, vector, value))
                continue
            received = scratch(2 + i)
            into = Slot.OUTPUT if i == len(messages) - 1 else _T
            operations.append(Recv((rank + message.shift) % p, vector, received))
            operations.append(Combine(received, with_own, into, vector))
            with_own = into
            if when <= last_use:
                if without >= 0:
                    operations.append(Combine(received, without, _S, vector))
                    without = _S
                else:
                    without = received
        return operations


def _choices(problem: Problem, machine: Machine) -> Iterable[Settings]:
    """The setting `lam`: the machine's λ.  Empty if there are too many messages to simulate."""
    p, (choice,) = problem.ranks, BY_LAM_FROM_1["choices"](problem, machine)
    messages = min(choice["lam"] * p.bit_length(), p)
    quick = messages <= MAX_SENT or (choice["lam"] >= p and machine.combine(1) is None)
    return [choice] if quick else []


def _register(
    name: str, rounded: Callable[[Fraction], int], summary: str, time: str, **more: Any
) -> None:
    def build(problem: Problem, settings: Settings) -> Census:
        # For k >= p no rank waits: every rank sends its own contribution to all others.
        return Census(problem, min(rounded(settings["lam"]), problem.ranks))

    register_combining(
        f"allreduce/census_{name}",
        summary,
        time,
        build,
        source=("Bruck1996 §3",),
        choices=_choices,
        parameters=BY_LAM_FROM_1["parameters"],
        order=lambda problem: "any",
        **more,
    )


_register(
    "delay_receive",
    ceil,
    "the census for the latency ⌈λ⌉, as if messages arrived later than they do",
    "T_λ(p)·t0 for an integer λ, else at most (T_⌈λ⌉(p) − ⌈λ⌉ + λ)·t0",
)
_register(
    "delay_send",
    floor,
    "the census for the latency ⌊λ⌋, as if sending took longer than it does",
    "T_λ(p)·t0 for an integer λ, else (qλ + r)·t0, where T_⌊λ⌋(p) = q⌊λ⌋ + r",
    searched=False,
)
