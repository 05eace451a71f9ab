"""Reads topologies from text: mesh:16x16, torus:4x4x8, hypercube:6, complete:32."""

import re
from collections.abc import Callable
from typing import NamedTuple

from collwise.errors import InvalidArgument, UnknownName
from collwise.model.topology.base import Topology
from collwise.model.topology.complete import Complete
from collwise.model.topology.hypercube import Hypercube
from collwise.model.topology.lattice import Mesh, Torus


class Notation(NamedTuple):
    """How one kind of topology is written.

    make: the class of the topology.   sizes: how many sizes it may have.   example: a text.
    """

    make: Callable[..., Topology]
    sizes: tuple[int, ...]
    example: str


FORMS = {
    "complete": Notation(Complete, (1,), "complete:32"),
    "hypercube": Notation(Hypercube, (1,), "hypercube:6"),
    "mesh": Notation(Mesh, (2,), "mesh:16x16"),
    "torus": Notation(Torus, (2, 3), "torus:4x4x8"),
}


def parse(text: str) -> Topology:
    """Read a topology from text such as torus:4x4x8, in upper or lower case, with x or × in sizes.

    Raises UnknownName for a kind that does not exist, InvalidArgument for sizes that are missing,
    too many, no integers or out of range.

    >>> parse("torus:4x4x8")
    Torus(4, 4, 8)
    """
    if not isinstance(text, str):
        raise UnknownName.of("topology", text, FORMS)
    kind, _, sizes = text.strip().lower().partition(":")
    form = FORMS.get(kind.strip())
    if form is None:
        raise UnknownName.of("topology", kind.strip(), FORMS)
    asked, remedy = f"topology {text[:40]!r}", f"write it as in {form.example}"
    pieces = [piece.strip() for piece in re.split("[x×]", sizes)] if sizes.strip() else []
    for piece in pieces:
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", piece):
            raise InvalidArgument(asked, f"{piece[:40]!r} is no size", remedy)
    if len(pieces) not in form.sizes:
        raise InvalidArgument(
            asked, f"{len(pieces) or 'no'} size{'s' * (len(pieces) != 1)}", remedy
        )
    return form.make(*map(int, pieces))
