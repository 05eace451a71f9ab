"""What ranks wait for in the event loop in Python: their ports, and their partners."""

from collwise.schedule.rows import NONE


class Partner:
    """A rank's latest partner.   until: all exchanges' end; others_until: end of all but its."""

    def __init__(self) -> None:
        self.rank, self.until, self.others_until = NONE, 0, 0

    def free_for(self, other: int) -> int:
        """The tick from which the rank can exchange messages with rank `other`."""
        return self.others_until if other == self.rank else self.until

    def meet(self, other: int, until: int) -> None:
        """Record that the rank exchanges messages with rank `other` until the tick `until`."""
        if other != self.rank:
            self.rank, self.others_until = other, self.until
        self.until = max(self.until, until)


class Port:
    """A port: the queue of rows that use it, in list order, and the tick from which it is free."""

    def __init__(self, free: int) -> None:
        self.queue: list[int] = []
        self.next, self.free, self.requested = 0, free, False

    def head(self) -> int:
        """The next row in the queue, or NONE."""
        return self.queue[self.next] if self.next < len(self.queue) else NONE

    def advance(self, free: int) -> None:
        """Go on to the next row; the port is free from the tick `free` on."""
        self.next, self.free, self.requested = self.next + 1, free, False
