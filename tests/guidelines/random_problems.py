"""Random problems, from a seed: machines of all kinds, sizes, ranks, operators."""

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import collwise as cw
from collwise.model.measured_machine import measured
from collwise.schedule.collectives import COLLECTIVES

KINDS = ("postal", "hockney", "loggp", "exchange_only", "wormhole", "levels", "measured")
SHARING = ("memory", "memory in nodes")
"""Kinds of machines whose ranks share memory."""
MAX_RANKS = (3, 4, 6, 8, 12)
MORE_RANKS = (*MAX_RANKS, 24, 48)
"""The latter where formulas give most times."""


@dataclass(frozen=True)
class Asked:
    """What a plan is asked for."""

    collective: str
    ranks: int
    machine: cw.Machine
    more: dict[str, Any] = field(default_factory=dict)

    def plan(self, **other: Any) -> cw.Plan:
        """Its plan; other: what else is asked, or instead."""
        asked = {"ranks": self.ranks, "machine": self.machine, **self.more, **other}
        return cw.plan(asked.pop("collective", self.collective), **asked)


def time(random: Random) -> Fraction:
    """A time of some nanoseconds to milliseconds; sometimes none at all."""
    if not random.randrange(12):
        return Fraction(0)
    return Fraction(random.randrange(1, 4000), 10 ** random.choice((6, 7, 8, 9)))


def per_byte(random: Random) -> Fraction:
    """Seconds per byte."""
    return time(random) / random.choice((10, 1000))


def size(random: Random) -> int:
    """Bytes, from 1 on; most of them some power of two."""
    nbytes = 1 << random.randrange(21)
    return random.choice((nbytes, nbytes, nbytes + random.randrange(nbytes)))


def machine_of(kind: str, random: Random, ranks: int) -> tuple[cw.Machine, dict[str, Any]]:
    """A machine of a kind, and the topology that goes with it, if any."""
    lam = Fraction(random.randrange(4, 80), random.choice((4, 3, 1)))
    if kind == "postal":
        return cw.Machine.postal(t0_s=time(random) or 1, lam=max(lam, Fraction(1))), {}
    if kind == "measured":
        return measured_machine(random), {}
    if kind == "loggp":
        L, o, g = (time(random) for _ in range(3))
        return cw.Machine.loggp(L_s=L, o_s=o, g_s=g, G_s=per_byte(random)), {}
    if kind == "memory":
        return sharing_memory(random), {}
    if kind in ("levels", "memory in nodes"):
        inner = random.choice([n for n in range(1, ranks + 1) if ranks % n == 0])
        laws = [measured_machine(random) for _ in range(2)]
        laws[0] = laws[0] if kind == "levels" else sharing_memory(random)
        placement = cw.Placement.regular(ranks // inner, inner)
        ports = random.choice(([], [time(random)]))
        return cw.Machine.levels(laws, placement, ports=ports), {}
    if kind == "wormhole":
        send, receive, hop = (time(random) for _ in range(3))
        beta, gamma, copy = (per_byte(random) for _ in range(3))
        law = cw.Machine.wormhole(
            send_s=send,
            receive_s=receive,
            hop_s=hop,
            beta_s=beta,
            gamma_s=gamma,
            copy_s=copy,
            all_port=random.random() < 0.3,
        )
        topology = random.choice((cw.topology.Mesh(1, ranks), cw.topology.Torus(1, ranks)))
        if random.random() < 0.3:
            alpha, beta = time(random), per_byte(random)
            return cw.Machine.hockney(alpha_s=alpha, beta_s=beta, gamma_s=gamma), {
                "topology": topology
            }
        return law, {"topology": topology}
    return cw.Machine.hockney(
        alpha_s=time(random),
        beta_s=per_byte(random),
        gamma_s=per_byte(random),
        exchange_only=kind == "exchange_only",
    ), {}


def sharing_memory(random: Random) -> cw.Machine:
    """Memory with measured or constant costs of publishing; a read is some share of them."""
    publishing: Any = measured_machine(random)
    if random.random() < 0.3:
        publishing = cw.Machine.postal(t0_s=time(random) or 1, lam=random.choice((1, 2, 4)))
    share = random.choice((Fraction(0), Fraction(1, 9), Fraction(1, 2), Fraction(1)))
    sizes = publishing.sizes() or (1,)
    read = [(nbytes, share * publishing.message(nbytes).latency) for nbytes in sizes]
    return cw.Machine.memory(publishing, read=read)


def measured_machine(random: Random) -> cw.Machine:
    """Up to three protocols; sometimes with combining measured, at other sizes."""
    sizes = sorted(random.sample([1 << k for k in range(3, 20)], random.randrange(1, 7)))
    rows, t0 = [], Fraction(1, 10**6)
    for nbytes in sizes:
        t0 *= random.choice((1, Fraction(5, 4), 3, 8))
        rows.append((nbytes, t0, random.choice(("1", "3/2", "3", "9"))))
    cut = random.randrange(1, len(rows) + 1)
    machine = measured([part for part in (rows[:cut], rows[cut:]) if part])
    if random.random() < 0.5:
        times = [(n, time(random)) for n in sorted(random.sample(range(1, 1 << 16), 3))]
        return machine.with_combining(times)
    return machine


def problems(seed: int, count: int, kinds: tuple[str, ...] = KINDS) -> list[Asked]:
    """So many random problems, the same for a seed."""
    random = Random(seed)
    asked = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        formulas = kind in ("postal", "hockney", "measured")
        ranks = random.randrange(1, random.choice(MORE_RANKS if formulas else MAX_RANKS) + 1)
        machine, more = machine_of(kind, random, ranks)
        asked.append(problem_on(machine, ranks, random, more))
    return asked


def problem_on(machine: cw.Machine, ranks: int, random: Random, more: dict[str, Any]) -> Asked:
    """A random problem on a machine."""
    collective = COLLECTIVES[random.choice(list(COLLECTIVES))]
    nbytes = size(random)
    if collective.has_sources:
        sources = sorted(random.sample(range(ranks), random.randrange(1, min(ranks, 20) + 1)))
        each = [random.choice((nbytes, nbytes, size(random))) for _ in sources]
        return Asked(collective.name, ranks, machine, {**more, "sources": sources, "nbytes": each})
    if collective.combines:
        dtype = random.choice(("float64", "int8"))
        op = random.choice(("sum", "sum", "noncommutative"))
        more = {**more, "op": op, "dtype": dtype}
        nbytes = -(-nbytes // (8 * ranks)) * 8 * ranks
    if collective.rooted:
        more = {**more, "root": random.randrange(ranks)}
    return Asked(collective.name, ranks, machine, {**more, "nbytes": nbytes})
