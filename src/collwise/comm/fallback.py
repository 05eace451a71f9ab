"""Whether the library may serve calls without a plan, by the environment."""

import logging
import os
from functools import cache

from collwise.errors import InvalidArgument

log = logging.getLogger("collwise")

FALLBACK = "COLLWISE_FALLBACK"
"""The environment variable whose value "never" refuses calls for which there is no plan."""
FORMER = "COLLWISE_HAND_OVER"
"""The former name of COLLWISE_FALLBACK, which is still read."""


def falls_back() -> bool:
    """Whether the library may serve calls without a plan, by the environment.

    Raises InvalidArgument for a value other than "never" or nothing.
    """
    value, former = (os.environ.get(name, "") for name in (FALLBACK, FORMER))
    if former:
        _say_renamed()
        if value not in ("", former):
            seen = f"{FORMER}={former}, as it was called before, says otherwise"
            raise InvalidArgument(f"{FALLBACK}={value}", seen, f"leave out {FORMER}")
    value = value or former
    if value not in ("", "never"):
        raise InvalidArgument(f"{FALLBACK}={value}", "it is no such word", "say never, or nothing")
    return not value


@cache
def _say_renamed() -> None:
    log.warning("%s is called %s now: write that", FORMER, FALLBACK)
