"""How well the switch kept time while a command ran, and what may have spoiled the times."""

from typing import Any, NamedTuple

import msgspec

from collwise.system import formatting

LATE_SHARE, LATE_S = 0.05, 200e-6
"""The report warns of late packets if the 95th percentile of lateness exceeds both this share of
the shortest latency and this time."""
BUSY = 0.8
"""The report warns of a switch that used more than this share of a core in its busiest 0.25 s."""


class Window(NamedTuple):
    """A quarter of a second of the switch; begin and end are on the monotonic clock.

    worked_s: processor time of the switch.   lateness_s: of the latest packet.
    """

    began_s: float
    ended_s: float
    worked_s: float
    lateness_s: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of the switch and of the hosts during one command."""

    network: str
    elapsed_s: float
    packets: int
    nbytes: int
    lateness_p50_s: float
    """The median lateness: from when a packet should have been delivered until it was."""
    lateness_p95_s: float
    lateness_max_s: float
    switch_drops: int
    """Packets that the switch could not deliver."""
    host_drops: int
    """Packets that a host's full queue lost."""
    resent: int
    """TCP segments that hosts sent again."""
    load: float
    """Share of one core that the switch used."""
    busiest_load: float
    """Share of one core that the switch used in its busiest quarter of a second."""
    punctual: bool
    """Whether the switch runs before all other processes (SCHED_FIFO)."""
    windows: tuple[Window, ...] = ()
    """The first 1,000 quarters of a second of the command."""
    least_latency_s: float
    quiet: bool
    """False if the poll shim, which lets waiting ranks sleep, is missing though it was wanted."""

    @property
    def drops(self) -> int:
        """Packets that the switch or a host lost."""
        return self.switch_drops + self.host_drops

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what may have spoiled times that were taken during the command."""
        late, resent = formatting.time(self.lateness_p95_s), self.resent and not self.drops
        spoiled = {
            f"packets came late ({late} at the 95th percentile): times are too long; use fewer"
            " hosts, a lower rate, or a quieter machine": (
                self.lateness_p95_s > max(LATE_S, LATE_SHARE * self.least_latency_s)
            ),
            f"{formatting.count(self.drops, 'packet')} lost: times include TCP's recovery; send"
            " less at once, or use a higher rate": self.drops,
            f"TCP sent {formatting.count(self.resent, 'segment')} again without need": resent,
            f"the switch was busy ({self.busiest_load:.0%} of a core): it, and not the"
            " configured rate, may be the limit": self.busiest_load > BUSY,
            "the switch has no real-time priority (SCHED_FIFO was refused): expect late packets": (
                not self.punctual
            ),
            "waiting ranks spin (no C compiler for the poll shim): expect late packets": (
                not self.quiet
            ),
        }
        return tuple(warning for warning, holds in spoiled.items() if holds)

    def lines(self) -> list[str]:
        """The report as lines of text."""
        mean = self.nbytes * 8 / self.elapsed_s
        return [
            f"lab      {self.network}",
            f"switch   {formatting.count(self.packets, 'packet')},"
            f" {formatting.rate(float(f'{mean:.3g}'))} in {formatting.time(self.elapsed_s)};"
            f" lateness p50 {formatting.time(self.lateness_p50_s)},"
            f" p95 {formatting.time(self.lateness_p95_s)},"
            f" max {formatting.time(self.lateness_max_s)};"
            f" {formatting.count(self.drops, 'drop')}; load {self.load:.0%}"
            f" (busiest {self.busiest_load:.0%})",
            *(f"warning  {warning}" for warning in self.warnings),
        ]

    def document(self) -> dict[str, Any]:
        """The report as a JSON object, with `drops` and `warnings`."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {**fields, "drops": self.drops, "warnings": list(self.warnings)}
