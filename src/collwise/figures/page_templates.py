"""What HTML pages share: the templates beside this module, their look, pictures on the page.

Whatever comes from outside is escaped; only a picture's SVG is inserted as it is.
"""

from dataclasses import replace
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from collwise.figures.report_pictures import Picture
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


def inline(picture: Picture, number: int) -> Picture:
    """The picture as a page needs it: named for those who cannot see it, its identifiers unique."""
    text = picture.svg
    for before in (' id="', "url(#", ' href="#'):
        text = text.replace(before, f"{before}p{number}-")
    name = Markup('<svg role="img" aria-label="{}"').format(picture.title)
    return replace(picture, svg=Markup(text.replace("<svg", name, 1)))  # it alone is not escaped
