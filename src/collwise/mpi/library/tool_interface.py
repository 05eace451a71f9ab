"""The library's control variables, by MPI's tool information interface (MPI_T, MPI 5.0 §15.3).

The interface is never finalized: finalizing it frees values that libraries still use.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from mpi4py import MPI

from collwise.errors import InvalidArgument

_MOST_TEXT = 1 << 14
"""Bytes of the longest name or description that is read whole."""
_Handle = (
    ctypes.c_void_p if MPI._sizeof(MPI.Datatype) > ctypes.sizeof(ctypes.c_int) else ctypes.c_int
)


@dataclass(frozen=True, eq=False)
class Variable:
    """A control variable whose value is one integer.

    index: the library's number of the variable.   nbytes: bytes of its value, 1 or 4.   choices:
    the value that each word means; empty unless the library enumerates the values.
    """

    name: str
    index: int
    nbytes: int
    description: str
    choices: Mapping[str, int]

    @cached_property
    def handle(self) -> int:
        """The library's handle for the variable, as an address."""
        handle, count = ctypes.c_void_p(), ctypes.c_int()
        _call("MPI_T_cvar_handle_alloc", self.index, None, *_into(handle, count))
        return handle.value or 0

    def read(self) -> int:
        """The variable's value.   Raises InvalidArgument if the library refuses."""
        value = ctypes.create_string_buffer(self.nbytes)
        _call("MPI_T_cvar_read", ctypes.c_void_p(self.handle), value)
        return int.from_bytes(value.raw, "little", signed=True)

    def write(self, value: int) -> None:
        """Set the variable's value.   Raises InvalidArgument if the library refuses."""
        text = value.to_bytes(self.nbytes, "little", signed=True)
        _call(
            "MPI_T_cvar_write",
            ctypes.c_void_p(self.handle),
            ctypes.create_string_buffer(text, self.nbytes),
        )

    @cached_property
    def writable(self) -> bool:
        """Whether the library lets a running program change the variable."""
        try:
            self.write(self.read())
        except InvalidArgument:
            return False
        return True


def variables() -> Mapping[str, Variable]:
    """The library's integer variables, by name; empty if `missing` says why they are missing."""
    return _found()[0]


def missing() -> str:
    """Why the library gives no access to variables; empty if it does."""
    return _found()[1]


@cache
def _library() -> ctypes.CDLL:
    """mpi4py's extension, through which the MPI library's functions are found."""
    return ctypes.CDLL(MPI.__file__)


def _call(name: str, *arguments: Any) -> None:
    if error := getattr(_library(), name)(*arguments):
        raise InvalidArgument(f"the MPI library's {name}", f"error {error}", "use its default")


def _into(*places: Any) -> list[Any]:
    return [ctypes.byref(place) for place in places]


@cache
def _found() -> tuple[Mapping[str, Variable], str]:
    provided, number = ctypes.c_int(), ctypes.c_int()
    try:
        # Open MPI raises the level of MPI itself if more is asked for here.
        _call("MPI_T_init_thread", MPI.Query_thread(), ctypes.byref(provided))
        _call("MPI_T_cvar_get_num", ctypes.byref(number))
    except (AttributeError, OSError, InvalidArgument) as problem:
        return MappingProxyType({}), f"the MPI library has no tool interface ({problem})"
    every = filter(None, map(_variable, range(number.value)))
    return MappingProxyType({one.name: one for one in every}), ""


def _variable(index: int) -> Variable | None:
    """The variable of this number; None if it is gone, or no MPI_INT or MPI_C_BOOL."""
    name, description = (ctypes.create_string_buffer(_MOST_TEXT) for _ in range(2))
    lengths = ctypes.c_int(_MOST_TEXT), ctypes.c_int(_MOST_TEXT)
    verbosity, bind, scope = (ctypes.c_int() for _ in range(3))
    datatype, enumeration = _Handle(), ctypes.c_void_p()
    before = name, *_into(lengths[0], verbosity, datatype, enumeration)
    try:
        _call("MPI_T_cvar_get_info", index, *before, description, *_into(lengths[1], bind, scope))
    except InvalidArgument:
        return None
    sizes = {one.handle: one.Get_size() for one in (MPI.INT, MPI.C_BOOL)}
    if (nbytes := sizes.get(datatype.value or 0)) is None:
        return None
    text = description.value.decode(errors="replace")
    return Variable(name.value.decode(), index, nbytes, text, _choices(enumeration))


def _choices(enumeration: ctypes.c_void_p) -> Mapping[str, int]:
    """The words of an enumeration, with their values; empty without an enumeration."""
    text, length = ctypes.create_string_buffer(_MOST_TEXT), ctypes.c_int(_MOST_TEXT)
    number, value = ctypes.c_int(), ctypes.c_int()
    if not enumeration.value:
        return {}
    _call("MPI_T_enum_get_info", enumeration, ctypes.byref(number), text, ctypes.byref(length))
    choices = {}
    for place in range(number.value):
        length.value = _MOST_TEXT
        about = enumeration, place, ctypes.byref(value), text, ctypes.byref(length)
        _call("MPI_T_enum_get_item", *about)
        choices[text.value.decode()] = value.value
    return choices
