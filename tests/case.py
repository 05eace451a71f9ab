"""Names a case where one test has many: every process collects every test."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_case(*what: object) -> Iterator[None]:
    """What fails in here is told with these words."""
    try:
        yield
    except BaseException as error:  # what Pytest raises where nothing else was is no Exception
        error.add_note(f"in the case {', '.join(map(str, what))}")
        raise
