"""Every error of collwise, in one place.

An error says three things: what was asked, what was seen, what to do.  Its class says what kind of
error it is; a command ends with the `exit_code` of the class.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

CALLED: Mapping[str, str] = MappingProxyType(
    {
        "add": "sum",
        "+": "sum",
        "plus": "sum",
        "mul": "prod",
        "multiply": "prod",
        "product": "prod",
        "*": "prod",
        "maximum": "max",
        "minimum": "min",
        "and": "land",
        "or": "lor",
        "xor": "lxor",
    }
)
"""Our operators by their names in MPI and other libraries, in lower case, without separators."""


LONGEST_BITS = 128
"""Messages show integers of up to this many bits; Python refuses to write very long ones."""


def shown(value: object) -> str:
    """Short text for a value in an error message, without addresses, so equal on all ranks."""
    if isinstance(value, int) and value.bit_length() > LONGEST_BITS:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    return f"a {type(value).__name__}"


class CollwiseError(Exception):
    """Base of every error that collwise raises on purpose.

    asked: what was asked for.  seen: what was found instead.  remedy: what to do about it.
    """

    exit_code = 2  # the request is wrong

    def __init__(self, asked: str, seen: str, remedy: str) -> None:
        super().__init__(asked, seen, remedy)
        self.asked = asked
        self.seen = seen
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.asked}: {self.seen}; {self.remedy}"


class InvalidArgument(CollwiseError, ValueError):
    """An argument, option or file that cannot be used, such as a root outside its range."""


class BeyondLimits(InvalidArgument):
    """A request that would take too much time or memory; plans leave out what raises it."""


class NothingApplies(InvalidArgument):
    """No algorithm is worth a try for a problem, or the one that was named is not."""


class UnknownName(CollwiseError, KeyError):
    """An unknown name; the message lists similar known names, or all if none is similar."""

    @classmethod
    def of(cls, kind: str, name: object, known: Iterable[str]) -> "UnknownName":
        """An error for the unknown `name` of a `kind`, with similar or all `known` names.

        name: what was given, of any type; only a string can be similar to a known name.
        """
        names = sorted(known)
        if not isinstance(name, str):
            return cls(f"{kind} ({shown(name)})", "there is none", "known: " + ", ".join(names))
        plain = re.sub(r"^mpi[_.]|[_\s-]", "", name.lower())
        if (ours := CALLED.get(plain, plain)) in names:
            return cls(f"{kind} {name!r}", "there is none", f"write {ours}, as it is called here")
        short = [n.rpartition("/")[2] for n in names]
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        close = get_close_matches(name.rpartition("/")[2], set(short), n=3, cutoff=0.5)
        near += [n for word in close for n, s in zip(names, short, strict=True) if s == word]
        near = list(dict.fromkeys(near))
        if near:
            return cls(f"{kind} {name!r}", "there is none", "did you mean " + ", ".join(near) + "?")
        return cls(f"{kind} {name!r}", "there is none", "known: " + ", ".join(names))


class InvalidSchedule(CollwiseError):
    """A schedule that does not do what its collective promises: the first violation, explained.

    rank, step, block: where the violation is; None if it concerns no single rank, step or block.
    """

    exit_code = 1  # a check failed

    def __init__(
        self,
        asked: str,
        seen: str,
        remedy: str = "mend the algorithm that made this schedule",
        *,
        rank: int | None = None,
        step: int | None = None,
        block: object = None,
    ) -> None:
        super().__init__(asked, seen, remedy)
        self.rank = rank
        self.step = step
        self.block = block


class WrongResult(CollwiseError):
    """A collective left wrong bytes in a user's buffer."""

    exit_code = 1


class DamagedProfile(CollwiseError):
    """A profile file that is missing or cannot be read: truncated, damaged, of a later version."""


class ForeignProfile(CollwiseError):
    """A profile that was measured on another machine or with another MPI library."""


class NoMPI(CollwiseError):
    """No MPI library, no launcher, a launcher of another MPI, or ranks that did not finish."""


class RanksLost(CollwiseError):
    """Ranks that were ended from outside while they worked."""

    exit_code = 1


class BrokenCommunicator(CollwiseError):
    """A communicator on which a collective was interrupted half-way."""

    exit_code = 1


class LabUnavailable(CollwiseError):
    """Emulated hosts cannot be made here: a permission, a device or a program is missing."""


class LabFailed(CollwiseError):
    """Emulated hosts that were lost, or a command on them that did not end in time."""

    exit_code = 1
