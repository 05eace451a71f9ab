"""Hashes that are computed once, for what plans are cached by."""

from dataclasses import fields
from functools import cached_property
from typing import Any


class KeptHash:
    """Base of frozen dataclasses whose fields are slow to hash: Fractions, or one for every rank.

    Each of them says `__hash__ = KeptHash.__hash__`; a dataclass would make its own otherwise.
    """

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(self.__getstate__().values()))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is kept beside them is not pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
