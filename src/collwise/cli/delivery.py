"""How results are delivered: what was measured is shown first, and saved as far as it can be."""

from collections.abc import Callable, Iterable
from typing import Any

from collwise.cli import output
from collwise.errors import CollwiseError
from collwise.report.tables import Saved


def deliver(
    as_json: bool,
    document: Callable[[], dict[str, Any]],
    show: Callable[[], object],
    savings: Iterable[Callable[[], Saved]],
) -> None:
    """Show results, and save them even if nobody reads or a file cannot be written.

    document: as JSON, with what was saved.   show: prints them for people.   savings: each raises
    CollwiseError where it cannot save.   Raises the last of those errors, after the others were
    said and all else was done.
    """
    if as_json:
        saved, troubles = _save(savings)
        complete = document()
        for files in saved:
            complete |= files.document
        output.write_json({**complete, "not_saved": list(map(str, troubles))})
    else:
        try:
            show()
        finally:
            saved, troubles = _save(savings)
        output.write(*(line for files in saved for line in files.lines))
    for trouble in troubles[:-1]:
        output.write(f"collwise: {trouble}", stream="err")
    for trouble in troubles[-1:]:
        raise trouble


def _save(savings: Iterable[Callable[[], Saved]]) -> tuple[list[Saved], list[CollwiseError]]:
    saved, troubles = [], []
    for save in savings:
        try:
            saved.append(save())
        except CollwiseError as trouble:
            troubles.append(trouble)
    return saved, troubles
