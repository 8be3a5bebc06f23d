"""What the parts of the command share."""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from typing import Any

# Options of the command that are options of the library too.
OPTIONS = "target|y|model|series|time|cutoff|horizon|known|lag|low|high|levels|outside|state|pool|issued|nowcast"

# What argparse calls the list of parts; its own type is not public.
Parts = Any


class Examples(argparse.RawDescriptionHelpFormatter):
    """Help with examples as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def part(parts: Parts, name: str, *, help: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A part of the command with examples in its help."""
    made: argparse.ArgumentParser = parts.add_parser(
        name, help=help, description=description, epilog=f"examples:\n{examples}", formatter_class=Examples
    )
    return made


def say(text: str) -> None:
    """A sentence on stderr."""
    print(f"orcast: {text}", file=sys.stderr, flush=True)


def as_options(text: str) -> str:
    """Write the arguments in a message of the library as options of the command.

    >>> as_options("expected y= to name a column, or low=0, got 'y=2' (nowcast=True fits it, outside='clip' clips it)")
    "expected --y to name a column, or low=0, got 'y=2' (--nowcast fits it, --outside clip clips it)"
    """

    def model(found: re.Match[str]) -> str:
        return f"--model {found[1]}:" + re.sub(r"([\w.]+): '([^']*)'(?:, )?", r"\1=\2,", found[2]).removesuffix(",")

    text = re.sub(r"(?<![\w'-])model=\{'([^']*)': \{([^}]*)\}\}", model, text)
    text = re.sub(r"issued_every=(\d+)", r"--issued \1", text).replace("issued_every=", "issued=")
    text = re.sub(rf"(?<![\w'-])({OPTIONS})='([^']*)'", r"--\1 \2", text)
    return re.sub(rf"(?<![\w'-])({OPTIONS})=(?:True\b|(?![\w'\"{{\[(]))", r"--\1", text)


def need(extra: str, *modules: str) -> None:
    """One clear sentence if an optional dependency is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"expected {', '.join(missing)} to be installed, got none: pip install 'orcast[{extra}]' brings it"
        )
