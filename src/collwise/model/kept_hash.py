"""Hashes that are computed once, for objects that are keys in a cache of plans."""

from dataclasses import fields
from functools import cached_property
from typing import Any


class KeptHash:
    """Base of frozen dataclasses that keep their hash, since their fields are slow to hash.

    Each subclass says `__hash__ = KeptHash.__hash__`; otherwise `dataclass` would make another one.
    """

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(self.__getstate__().values()))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone, by name: neither the hash nor other caches are pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
