"""The templates of HTML pages, which lie beside this module, and how they write numbers.

Whatever comes from outside is escaped; only a picture's SVG is inserted as it is.
"""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from collwise.figures.style import THEME
from collwise.system import formatting


@cache
def _environment() -> Environment:
    folder = files("collwise.figures")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
    )
    environment.filters |= {
        "time": formatting.time,
        "between": formatting.time_between,
        "digits": formatting.significant,
        "size": formatting.size,
        "count": formatting.count,
        "breakable": lambda cell: Markup(str(escape(cell)).replace("(", "<wbr>(")),
        "mode": lambda mode: {"nonblocking": "non-blocking"}.get(mode, mode),
    }
    environment.globals["theme"] = THEME
    return environment


def template(name: str) -> Template:
    """A page's template, which may include `page_style.css.jinja`."""
    return _environment().get_template(name)
