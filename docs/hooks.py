"""Extensions of the documentation site: docstrings as Markdown, the command's help, links out of docs."""

import argparse
import contextlib
import io
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import griffe
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from zensical.extensions.context import ContextPreprocessor

import orcast
from orcast import cli

DOCS = Path(__file__).resolve().parent
HELP = "<!-- help -->"
INTEGRATIONS = "<!-- integrations -->"
MODULES = ("evaluate", "testing")

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(?:~(?:[^`]*\.)?)?([^`]+)`")
CODE = re.compile(r"(``[^`]+``|`[^`\n]+`)")
NAME = re.compile(r"(?<![\[`])`(?:oc\.)?(\w+)(?:\([^`]*\))?`(?![\]`])")
FENCE = re.compile(r"^\s*(```|~~~)")
RULE = re.compile(r"-{3,}$")
DESCRIPTIONS = ("Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
POINT = re.compile(r"^(?:[-*]|\d+\.) ")
PAGE = re.compile(r"docs/([\w/-]+)\.md")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def markdown(docstring: str, own: str = "") -> str:
    """Prepare a numpydoc docstring for Markdown: link public names, escape signs, fence examples outside a section.

    `own` is the name of the documented object, which does not link to itself.
    """
    out: list[str] = []
    section, fenced = "", False
    for line, below in pairwise([*docstring.splitlines(), ""]):
        text = line.strip()
        if RULE.match(below):
            section = text
        if text.startswith(">>>") and section != "Examples" and not fenced:
            fenced = not section
            out += ["", "```pycon"] if fenced else ["Examples", "--------"]
            section = section and "Examples"
        if fenced and not text:
            fenced = False
            out.append("```")
        if fenced:
            out.append(text if text.startswith(">>>") else line)
        elif is_verbatim(line, section):
            out.append(line)
        else:
            out.append(_prose(line, own))
    return "\n".join([*out, "```"] if fenced else out)


def is_verbatim(line: str, section: str) -> bool:
    """Return whether a line is a formula, an example or the head of a parameter."""
    if section in DESCRIPTIONS:  # descriptions are indented, formulas in them twice
        return not line.startswith("    ") or line.startswith("        ")
    return section == "Examples" or line.startswith("    ")


def _prose(line: str, own: str) -> str:
    pieces = CODE.split(ROLE.sub(lambda role: f"`{role[1]}`", line))
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = _linked(piece.strip("`"), own)
        else:
            # all docstrings are shown in pages of the folder "reference"
            pieces[i] = PAGE.sub(r"[docs/\1.md](../\1.html)", re.sub(r"<(?=\S)", "&lt;", piece))
    return "".join(pieces)


def _linked(name: str, own: str) -> str:
    full = name.removeprefix("orcast.").removeprefix("oc.")
    if full != own and (full in orcast.__all__ or (full.partition(".")[0] in MODULES and full.count(".") == 1)):
        return f"[`{name}`][orcast.{full}]"
    return f"`{name}`"


class Docstrings(griffe.Extension):
    """Prepare all docstrings with `markdown`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = apart(markdown(obj.docstring.value, obj.name))


class Pages(Preprocessor):
    """Prepare the Markdown of a page."""

    def run(self, lines: list[str]) -> list[str]:
        """Insert generated sections, and replace links out of `docs` by their text."""
        text = "\n".join(lines)
        if HELP in text:
            text = text.replace(HELP, command_help())
        if INTEGRATIONS in text:
            text = text.replace(INTEGRATIONS, integrations())
        folder = (DOCS / ContextPreprocessor.from_markdown(self.md).page.path).parent
        text = LINK.sub(lambda link: _inside(link, folder), apart(text))
        return (text if folder.name == "reference" else linked(text)).split("\n")


class PagesExtension(Extension):
    """Rewrites a page before anything else reads it."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Add the preprocessor, ahead of all others."""
        md.preprocessors.register(Pages(md), "pages", 1000)


def makeExtension(**settings: Any) -> Extension:
    """The extension, under the name that Python-Markdown looks for."""
    return PagesExtension(**settings)


def linked(text: str) -> str:
    """Link each public name to the reference where a page first has it in backticks, alone or as a call."""
    out: list[str] = []
    seen: set[str] = set()
    fenced = False
    for line in text.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        if not fenced and not line.startswith(("#", "    ", "```")):
            line = NAME.sub(lambda found: _first(found, seen), line)
        out.append(line)
    return "\n".join(out)


def _first(found: re.Match[str], seen: set[str]) -> str:
    name = found[1]
    if name in seen or name not in orcast.__all__:
        return found[0]
    seen.add(name)
    return f"[{found[0]}][orcast.{name}]"


def apart(text: str) -> str:
    """Insert empty lines before lists and tables, which Python-Markdown needs and code hosts do not."""
    out: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        before = out[-1] if out else ""
        point = POINT.match(line) and not POINT.match(before)
        row = line.startswith("|") and not before.startswith("|")
        if not fenced and before.strip() and not before.startswith(" ") and (point or row):
            out.append("")
        out.append(line)
    return "\n".join(out)


def _inside(link: re.Match[str], folder: Path) -> str:
    """Return a link, or only its text if its target is a file outside `docs`."""
    target = Path(os.path.normpath(folder / link[2]))
    if target.is_relative_to(DOCS) or not target.exists():
        return link[0]  # a missing target is reported as a broken link
    return link[1]


def command_help() -> str:
    """The help of the command and of each of its parts."""
    parts = next(action for action in cli.parser()._actions if isinstance(action, argparse._SubParsersAction))
    commands = [[], *([name] for name in parts.choices)]
    return "\n\n".join(
        f"## {' '.join(['orcast', *command])}\n\n```text\n{_help(command).strip()}\n```" for command in commands
    )


def _help(command: list[str]) -> str:
    words, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(words), contextlib.suppress(SystemExit):
            cli.main([*command, "--help"])
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width
    return words.getvalue()


def integrations() -> str:
    """A section for each module of `orcast.integrations`."""
    folder = Path(orcast.__file__).parent / "integrations"
    places = (place for place in folder.iterdir() if place.suffix == ".py" or (place / "__init__.py").exists())
    names = sorted(place.stem for place in places if not place.stem.startswith("_"))
    return "\n\n".join(
        f"::: orcast.integrations.{name}\n    options:\n      show_root_full_path: true" for name in names
    )
