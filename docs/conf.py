"""How Sphinx makes the site of pages that `build_site.py` lays out, and reads our docstrings."""

import inspect
import re
from typing import Any

from sphinx.util.inspect import stringify_signature

import collwise

project = "collwise"
author = copyright = "The collwise developers"  # noqa: A001
version = release = collwise.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
highlight_language = "text"
smartquotes = False

html_theme = "furo"
html_title = "collwise"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {
    "members": True,
    "inherited-members": "Intracomm,Struct,Mapping,int,tuple,Exception",
    "exclude-members": "f2py,py2f",  # mpi4py's
}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
add_module_names = False

_ARGUMENT = re.compile(r"(?:^|(?<=[.)]) {2,}|(?<=[.)])\n)(\*{0,2}[a-z_]\w*(?:, [a-z_]\w*)*): +")
_CODE = re.compile(r"`([^`]+)`")


def _paragraph(text: str) -> str:
    """A paragraph of a docstring as reStructuredText: arguments, results, errors in own lines."""
    if text.startswith("    "):
        return f"::\n\n{text}"
    text = _ARGUMENT.sub(r"\n\n- `\1`: ", text)
    text = re.sub(r"(?:^|\n| {2,})(Returns|Yields|Raises|Source)\b", r"\n\n\1", text)
    items = [" ".join(item.split("\n")) for item in text.strip("\n").split("\n\n")]
    return "\n\n".join(map(_escaped, items))


def _escaped(text: str) -> str:
    """Text between single backticks is code; elsewhere nothing is markup."""
    pieces = _CODE.split(text)
    for k, piece in enumerate(pieces):
        if k % 2:
            public = piece in collwise.__all__ and piece[0].isupper()
            pieces[k] = f":any:`{piece} <collwise.{piece}>`" if public else f"``{piece}``"
        else:
            pieces[k] = re.sub(r"([*|_\\])", r"\\\1", piece)
    return "\\ ".join(piece for piece in pieces if piece)


def rewritten(
    app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]
) -> None:
    """Write a docstring as reStructuredText, in place."""
    text = "\n".join(lines).strip("\n")
    paragraphs = re.split(r"\n{2,}", text)
    lines[:] = [*"\n\n".join(map(_paragraph, paragraphs)).split("\n"), ""]


def signature(
    app: Any, what: str, name: str, thing: object, options: Any, shown: str, returned: str
) -> tuple[str, str] | None:
    """The arguments of `__init__` for a class that has one, whatever its `__new__` takes."""
    if what != "class" or "__init__" not in vars(thing):
        return None
    arguments = inspect.signature(thing.__init__)  # type: ignore[misc]
    _, *named = arguments.parameters.values()
    return stringify_signature(arguments.replace(parameters=named), unqualified_typehints=True), ""


def inherited(
    app: Any, what: str, name: str, thing: object, skipped: bool, options: Any
) -> bool | None:
    """Leave out what `Comm` has from mpi4py as it is."""
    origin = getattr(getattr(thing, "__objclass__", thing), "__module__", "")
    return True if str(origin).startswith("mpi4py") else None


def setup(app: Any) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("autodoc-process-docstring", rewritten)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", inherited)
