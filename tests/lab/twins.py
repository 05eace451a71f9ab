"""What carries packets, in Python and compiled, where that was built."""

from typing import Any

from collwise.lab import carrier, switch

TWINS: list[Any] = [carrier.Carrier]
if switch.COMPILED:
    from collwise.lab import _carrier

    TWINS.append(_carrier.Carrier)
