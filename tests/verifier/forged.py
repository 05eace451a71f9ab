"""Timings that nobody has simulated: what the rules of ports and links ask of one."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from collwise.timing import Timing, Transfer
from collwise.timing.times import Combining, Passage


@dataclass(frozen=True)
class Forged:
    """As much of a `Timing` as is checked."""

    finish: tuple[Fraction, ...]
    transfers: tuple[Transfer, ...]
    combines: tuple[Combining, ...] = ()
    passages: tuple[Passage, ...] = ()


def numbers(text: str) -> dict[str, Any]:
    """Fields and their numbers, written `start=1/2 sent=3/2`."""
    pairs = (word.split("=") for word in text.split())
    return {name: int(x) if x.lstrip("-").isdigit() else Fraction(x) for name, x in pairs}


def forged(timing: Timing, **other: Any) -> Any:
    """The timing with something else in the place of some of it."""
    of_timing = {name: getattr(timing, name) for name in Forged.__dataclass_fields__}
    return Forged(**of_timing | other)


def finished(
    timing: Timing, transfers: Iterable[Transfer], combines: Iterable[Combining] | None = None
) -> Any:
    """The timing with other transfers, perhaps other combines, and finish times that fit."""
    transfers = tuple(transfers)
    combines = timing.combines if combines is None else tuple(combines)
    finish = [Fraction(0)] * len(timing.finish)
    for t in transfers:
        finish[t.source] = max(finish[t.source], t.sent)
        finish[t.target] = max(finish[t.target], t.received)
    for c in combines:
        finish[c.rank] = max(finish[c.rank], c.end)
    return forged(timing, finish=tuple(finish), transfers=transfers, combines=combines)
