"""A base class for cache keys whose hash is computed once."""

from dataclasses import fields
from functools import cached_property
from typing import Any


class KeptHash:
    """Base of frozen dataclasses that keep their hash, because their fields are slow to hash."""

    def __init_subclass__(cls) -> None:
        cls.__hash__ = KeptHash.__hash__  # type: ignore[method-assign]  # `dataclass` keeps it

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(self.__getstate__().values()))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields by name for pickling, without the hash and other cached values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
