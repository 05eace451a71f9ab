import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure

from collwise.errors import InvalidArgument
from collwise.figures.style import BLUE, THEME, note, plain, save, svg
from collwise.figures.tree_diagram import tree_diagram
from tests.figures.examples import drawn


@pytest.fixture(scope="module")
def picture() -> Figure:
    return tree_diagram(*drawn("binomial", 4))


def test_svg_is_one_element_without_junk(picture: Figure) -> None:
    text = svg(picture)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for junk in ("<?xml", "<!DOCTYPE", "<metadata", "<style", "<!--", "xlink"):
        assert junk not in text


def test_svg_names_only_what_it_refers_to(picture: Figure) -> None:
    text = svg(picture)
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert set(names) == set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))


def test_svg_is_deterministic(tmp_path: Path) -> None:
    first, second = (tree_diagram(*drawn("binomial", 4)) for _ in range(2))
    save(first, tmp_path / "first.png")
    assert len({svg(figure) for figure in (first, first, second)}) == 1


def test_colours_of_svg_follow_the_page(picture: Figure) -> None:
    text = svg(picture)
    used = set(re.findall(r"#[0-9a-f]{6}", text))
    assert f"var(--blue, {BLUE})" in text
    assert used <= {light for light, _ in THEME.values()}
    assert len(re.findall(r"#[0-9a-f]{6}\)", text)) == len(re.findall(r"#[0-9a-f]{6}", text))


def test_unwritable_files_are_named(picture: Figure, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match=r"file/tree\.png: .*; name another file"):
        save(picture, tmp_path / "file" / "tree.png")


def test_settings_of_the_program_neither_matter_nor_change(picture: Figure) -> None:
    usual = svg(picture)
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "none"}):
        before = dict(matplotlib.rcParams)
        assert svg(tree_diagram(*drawn("binomial", 4))) == usual
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("broadcast/binomial", "broadcast/binomial"),
        ("_hidden", " _hidden"),
        ("two\nlines\t\x07", "two lines"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_plain_text(name: str, shown: str) -> None:
    assert plain(name) == shown


def test_names_are_never_mathematics_and_may_lack_glyphs() -> None:
    svg(note(r"$\frac{1}{$ 漢字 \U0001F600", title="$x_1$"))
