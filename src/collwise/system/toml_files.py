"""Files in TOML that people write, such as a network or a machine with levels."""

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from collwise.errors import CollwiseError, InvalidArgument
from collwise.system.files import read_input

Form = TypeVar("Form")
Described = TypeVar("Described")


def read_toml(
    path: Path, form: type[Form], make: Callable[[Form], Described], asked: str, page: str
) -> Described:
    """The object that a TOML file describes.

    form: the class that has the file's fields.   make: makes the result from an instance of `form`;
    raises a CollwiseError for wrong values.   asked: what errors call the file.   page: the
    document that shows how to write the file.
    Raises InvalidArgument, with the place in the file, if it cannot be read or is wrong.
    """
    remedy = f"correct it; {page} shows the form"
    try:
        text = read_input(path).removeprefix(codecs.BOM_UTF8)  # some editors put it there
        return make(msgspec.toml.decode(text, type=form))
    except OSError as problem:
        seen, remedy = problem.strerror or str(problem), "name another file"
    except msgspec.ValidationError as problem:
        seen = str(problem)
    except (UnicodeDecodeError, msgspec.DecodeError) as problem:
        seen = f"it is no TOML ({problem})"
    except RecursionError:
        seen = "its lists are in each other too deeply"
    except CollwiseError as problem:
        seen, remedy = f"{problem.asked}: {problem.seen}", problem.remedy
    raise InvalidArgument(f"{asked} {path}", seen, remedy)
