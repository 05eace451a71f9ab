"""The complete graph: only messages with the same source and target share a link."""

from dataclasses import dataclass
from functools import cached_property

from collwise.model.topology.base import Topology, checked_sizes
from collwise.model.topology.numbering import near_square


@dataclass(frozen=True)
class Complete(Topology):
    """A complete graph: a link from each rank to every other one, with id source·ranks + target.

    ranks: from 1 to 2^31.   Ids with source = target have no link.   Algorithms see the ranks as
    the mesh nearest to a square.   Raises InvalidArgument for a number out of range.
    """

    ranks: int
    kind = "complete"

    def __post_init__(self) -> None:
        (ranks,) = checked_sizes("complete graph", ("ranks",), [self.ranks])
        object.__setattr__(self, "ranks", ranks)

    @property
    def size(self) -> int:  # noqa: D102
        return self.ranks

    @cached_property
    def shape(self) -> tuple[int, int]:  # noqa: D102
        return near_square(self.ranks)

    @cached_property
    def links(self) -> int:  # noqa: D102
        return self.ranks * self.ranks

    def route(self, source: int, target: int) -> tuple[int, ...]:  # noqa: D102
        self._check(source, target)
        return () if source == target else (source * self.ranks + target,)

    def ends(self, link: int) -> tuple[int, int]:  # noqa: D102
        self._check_link(link)
        source, target = divmod(link, self.ranks)
        if source == target:
            raise self._no_link(link)
        return source, target

    def describe(self) -> str:  # noqa: D102
        return f"complete graph of {self.ranks}"
