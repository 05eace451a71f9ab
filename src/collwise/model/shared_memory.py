"""Machines whose ranks share memory: a rank publishes bytes once, and other ranks read them.

The sender is busy for the publication, however many read it; each reader is busy for its own read.
A rank does one thing at a time.  `schedule.dependencies.publications` says which sends are one
publication.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from collwise.errors import InvalidArgument
from collwise.model.exact import Number, rounded_latency
from collwise.model.kept_hash import KeptHash
from collwise.model.machine import Cost, Machine, Postal, checked_machine, checked_nbytes
from collwise.model.measured_machine import Measured, TimesBySize, interpolated, times_by_size
from collwise.system.formatting import chosen_time

ASKED = "a machine whose ranks share memory"


@dataclass(frozen=True)
class Memory(KeptHash, Machine):
    """A machine whose ranks share memory.  Build one with `Machine.memory`.

    publishing: a machine whose t0 is the time for which a publication keeps the sender busy, and
    whose λ·t0 is the time from the start until an idle reader has the bytes.   reading: seconds, by
    size, for which a read keeps its reader busy; () if reads take no time.
    """

    publishing: Postal | Measured
    reading: TimesBySize
    kind = "memory"
    law = "memory"
    independent_ports = False

    @property
    def shares_memory(self) -> bool:  # noqa: D102
        return True

    def message(self, nbytes: int) -> Cost:
        """The cost of a publication: its sender is busy for t0; idle readers have it after λ·t0."""
        return self.publishing.message(nbytes)

    def receipt(self, nbytes: int) -> Fraction:
        """Seconds for which reading nbytes keeps the reader busy."""
        nbytes = checked_nbytes(nbytes)
        read = interpolated(self.reading, nbytes)[0] if self.reading else Fraction(0)
        return min(read, self.message(nbytes).latency)  # beyond the points the lines may cross

    def combine(self, nbytes: int) -> Fraction | None:  # noqa: D102
        return self.publishing.combine(nbytes)

    def sizes(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(sorted({*self.publishing.sizes(), *(nbytes for nbytes, _ in self.reading)}))

    def combining_sizes(self) -> tuple[int, ...]:  # noqa: D102
        return self.publishing.combining_sizes()

    def planning_lam(self, nbytes: int) -> Fraction:
        """The λ for combining trees: the latency over a read's time, or over t0 if reads take 0."""
        read = self.receipt(nbytes) or self.message(nbytes).gap
        return rounded_latency(self.message(nbytes).latency / read)

    def _slower(self, seconds: Fraction) -> "Memory":
        """The machine whose publications and reads take `seconds` longer."""
        times = self.reading or ((0, Fraction(0)),)
        reading = tuple((nbytes, time + seconds) for nbytes, time in times)
        return replace(self, publishing=self.publishing._slower(seconds), reading=reading)

    def describe(self) -> str:  # noqa: D102
        read = chosen_time(self.receipt(1))
        return f"shared memory: {self.publishing.describe()}; a read of a byte takes {read}"


def sharing_memory(publishing: Machine, read: Number | Iterable[tuple[int, Number]]) -> Memory:
    """The machine of `Machine.memory`, which explains the arguments.

    Raises InvalidArgument for a read longer than λ·t0, and if `publishing` is neither postal nor
    measured.
    """
    checked_machine(publishing, ASKED)
    if not isinstance(publishing, Postal | Measured):
        remedy = "give Machine.postal or a measured machine"
        raise InvalidArgument(ASKED, f"its publications are {publishing.kind}", remedy)
    machine = Memory(publishing, times_by_size(read, ASKED, "read"))
    for nbytes in machine.sizes() if machine.reading else ():
        if interpolated(machine.reading, nbytes)[0] > machine.message(nbytes).latency:
            seen = f"a read of {nbytes} bytes takes longer than publishing and reading them"
            raise InvalidArgument(ASKED, seen, "give reads that take λ·t0 at most")
    return machine
