"""Build the site: `uv run --group docs docs/build_site.py`; then open build/site/index.html.

Its pages are those of docs/, some other files of the repository (`_PLACES`), and pages that are
made here from the code: commands, public names, algorithms, results.  They are laid out in
build/pages, where links between files of the repository become links between pages; Sphinx does the
rest (`conf.py`).  Whatever it warns of, such as a broken link, is an error.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import isclass, isfunction, ismodule
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import click
from json_documents import DOCUMENTS, schema

import collwise as cw
from collwise.algorithms import ALGORITHMS
from collwise.cli import COMMANDS, collwise

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
CONTENTS = ROOT / "docs" / "contents.md"
"""The navigation; it is part of the first page, which the README is."""
SITE = ROOT / "build" / "site"
LIMIT_S = 300

_RESULTS = sorted(filter(Path.is_file, (ROOT / "benchmarks" / "results").iterdir()))
_PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/README.md": "examples.md",
    **{f"benchmarks/results/{path.name}": f"results/{path.name}" for path in _RESULTS},
    **{f"examples/{path.name}": f"examples/{path.name}" for path in ROOT.glob("examples/*.py")},
}
"""Where files of the repository are on the site, if they are not in docs/."""

BEYOND = ("lab.Cluster", "model.presets", "schedule.operations", "schedule.program")
"""What has a page in the reference besides the names of `collwise` itself."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]*)(#[^)\s]*)?(?=\))")
_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
_TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.M)


def lay_out() -> None:
    """Write all pages into build/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("*.md", "*.py", "__pycache__")
    )
    for path in (ROOT / "docs").rglob("*.md"):
        if path == CONTENTS:
            continue
        place = str(path.relative_to(ROOT / "docs"))
        _write(place, _linked(path.read_text(encoding="utf-8"), f"docs/{place}", place))
    for origin, place in _PLACES.items():
        text = (ROOT / origin).read_text(encoding="utf-8")
        _write(place, _linked(text, origin, place) if place.endswith(".md") else text)
    made = {
        "reference/commands.md": commands_page(),
        "reference/algorithms.md": algorithms_page(),
        "reference/python.md": names_page(),
        "results/index.md": results_page(),
        **{f"reference/api/{name}.md": name_page(name) for name in public_names()},
    }
    for place, text in made.items():
        _write(place, text)
    for name in DOCUMENTS:
        text = json.dumps(schema(name), indent=2, ensure_ascii=False)
        _write(f"schemas/{name}.schema.json", f"{text}\n")
    with (PAGES / "reference" / "json.md").open("a", encoding="utf-8") as page:
        page.write(documents_section())
    with (PAGES / "examples.md").open("a", encoding="utf-8") as page:
        page.writelines(map(_example, sorted(ROOT.glob("examples/*.py"))))
    with (PAGES / "index.md").open("a", encoding="utf-8") as page:
        page.write(CONTENTS.read_text(encoding="utf-8"))


def _write(place: str, text: str) -> None:
    path = PAGES / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _linked(text: str, origin: str, place: str) -> str:
    """A page with links between pages instead of links between files of the repository.

    origin: the file's path in the repository.   place: that on the site.
    """

    def link(found: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(origin).parent / found[1])
        if (ROOT / target).is_dir():
            target += "/README.md"
        there = _PLACES.get(target, target.removeprefix("docs/"))
        return os.path.relpath(there, PurePosixPath(place).parent) + (found[2] or "")

    ends = [0, *(end for block in _BLOCK.finditer(text) for end in block.span()), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    pieces[::2] = [_LINK.sub(link, piece) for piece in pieces[::2]]
    return _TITLED.sub(r"```{code-block} \1\n:caption: \2\n", "".join(pieces))


def public_names() -> list[str]:
    """What has a page in the reference, in its order."""
    return [*sorted(cw.__all__, key=str.casefold), *BEYOND]


def _thing(name: str) -> object:
    module, _, last = name.rpartition(".")
    return getattr(import_module(f"collwise.{module}".rstrip(".")), last)


def _summary(name: str) -> str:
    if name == "ALGORITHMS":
        return "All algorithms by their names, a mapping; [a table](algorithms.md)."
    if name == "presets":
        return "The papers' machines by their names, a mapping to `collwise.model.presets.Preset`."
    return (_thing(name).__doc__ or "").partition("\n")[0]


def name_page(name: str) -> str:
    """The page of a public name, for autodoc."""
    thing, full = _thing(name), f"collwise.{name}"
    if name == "presets":
        body = "\n".join(f"- `{key}`: {preset.summary}" for key, preset in cw.presets.items())
        return f"# {full}\n\n{_summary(name)}\n\n{body}\n"
    if name == "ALGORITHMS":
        return f"# {full}\n\n{_summary(name).replace('algorithms.md', '../algorithms.md')}\n"
    kind = next(k for k, is_it in _KINDS.items() if is_it(thing))
    return f"# {full}\n\n```{{eval-rst}}\n.. auto{kind}:: {full}\n```\n"


_KINDS: dict[str, Callable[[object], bool]] = {
    "module": ismodule,
    "class": isclass,
    "function": isfunction,
}


def names_page() -> str:
    """Every public name with the first line of its docstring."""
    pages = public_names()
    rows = "".join(f"| [`{name}`](api/{name}.md) | {_summary(name)} |\n" for name in pages)
    tree = "".join(f"{name} <api/{name}>\n" for name in pages)
    *_, about = (cw.__doc__ or "").strip().split("\n\n")
    table = f"| in `collwise` | |\n|---|---|\n{rows}"
    return f"# Python\n\n{about}\n\n{table}\n```{{toctree}}\n:hidden:\n\n{tree}```\n"


def commands_page() -> str:
    """The help of every command, as the command prints it."""
    whole = click.Context(collwise, info_name="collwise")
    sections = ["# Commands\n\nWhat `collwise COMMAND --help` prints.\n", _help(collwise, whole, 2)]
    for name in COMMANDS:
        command = collwise.get_command(whole, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=whole)
        sections.append(_help(command, context, 2))
        for under, one in getattr(command, "commands", {}).items():
            sections.append(_help(one, click.Context(one, info_name=under, parent=context), 3))
    return "\n".join(sections)


def _help(command: click.Command, context: click.Context, level: int) -> str:
    context.max_content_width = context.terminal_width = 80
    context.help_option_names, context.show_default = ["-h", "--help"], True
    text = command.get_help(context)
    return f"{'#' * level} {context.command_path}\n\n```text\n{text}\n```\n"


def algorithms_page() -> str:
    """All algorithms, by collective, as they are registered."""
    lines = [
        "# Algorithms\n\nA plan chooses among these; `--algorithm`, `algorithms=` and"
        " `COLLWISE_ALGORITHMS` name one ([how](../own-algorithm.md#choose-it-by-hand))."
        " Keys of sources are those of [the bibliography](../bibliography.bib). Those with"
        " *by name* are not searched where nothing but ranks' own ports delays messages."
    ]
    for collective in dict.fromkeys(one.collective for one in ALGORITHMS.values()):
        lines.append(f"\n## {collective}\n\n| name | |\n|---|---|")
        for one in sorted(ALGORITHMS.values(), key=lambda one: one.name):
            if one.collective != collective:
                continue
            facts = [
                one.summary,
                f"Time: {one.time}",
                *(f"`{name}`: {it.meaning}" for name, it in one.parameters.items()),
                f"Source: {'; '.join(one.source) or 'ours'}",
            ]
            shown = "<br>".join(facts).replace("|", "\\|").replace("*", "\\*")
            lines.append(f"| `{one.short_name}`{'' if one.searched else ' (by name)'} | {shown} |")
    return "\n".join(lines) + "\n"


def documents_section() -> str:
    """Every document and every object that documents are made of, with their fields."""
    parts: dict[str, dict[str, Any]] = {}
    lines = []
    for name in DOCUMENTS:
        made = schema(name)
        parts |= made["$defs"]
        top = made["$ref"].rpartition("/")[2]
        lines.append(f"\n## {name}\n\n[Its schema](../schemas/{name}.schema.json).")
        lines.append(_fields(made["$defs"][top]))
    for name in sorted(parts.keys() - _SECTIONS.keys()):
        lines.append(f"\n### {name}\n\n{_fields(parts[name])}")
    return "\n".join(lines) + "\n"


_FIRST = ("format", "version")
_SECTIONS = {one.__name__: name for name, one in DOCUMENTS.items()}


def _fields(part: Mapping[str, Any]) -> str:
    about = part.get("description", "").split("\n\n")[0].replace("\n", " ")
    rows = "".join(
        f"| {f'`{name}`' if name in part['required'] else f'[`{name}`]'} | {_type(field)} |\n"
        for name, field in sorted(part["properties"].items(), key=lambda it: it[0] not in _FIRST)
    )
    return f"{about}\n\n| field | |\n|---|---|\n{rows}"


def _type(field: Mapping[str, Any]) -> str:
    """The type of a field in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{_SECTIONS.get(name, name.lower())})"
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    if "enum" in field:
        return " or ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    kind = field.get("type", "anything")
    if kind == "array":
        items = field.get("items") or field.get("prefixItems", [{}])[0]
        return f"list of {_type(items)}"
    if kind == "object" and field.get("additionalProperties"):
        return f"object of {_type(field['additionalProperties'])}"
    return str(kind)


def results_page() -> str:
    """A list of the committed measurements."""
    lines = ["# Results of measurements\n\nWhat was measured, on which day, and what came of it.\n"]
    pages = [path for path in _RESULTS if path.suffix == ".md"]
    for path in pages:
        title = path.read_text(encoding="utf-8").lstrip("# ").partition("\n")[0]
        lines.append(f"- [{title}]({path.name})")
    tree = "\n".join(path.stem for path in pages)
    return "\n".join([*lines, f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"])


def _example(path: Path) -> str:
    program = path.read_text(encoding="utf-8")
    printed = path.with_suffix(".out").read_text(encoding="utf-8")
    return (
        f"\n## {path.stem}\n\n```{{code-block}} python\n:caption: {path.name}\n\n{program}```\n\n"
        f"It prints\n\n```text\n{printed}```\n"
    )


def main() -> int:
    """Build everything; returns the exit code."""
    lay_out()
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    return subprocess.run(
        [*command, "-c", ROOT / "docs", PAGES, SITE], timeout=LIMIT_S, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
