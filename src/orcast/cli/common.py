"""What the parts of the command share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from orcast import limits
from orcast.validation import short

# Options of the command that are options of the library too.
OPTIONS = "target|y|model|series|time|cutoff|horizon|known|lag|low|high|levels|outside|state|pool"

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


def limited(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """A kind of number for an option, refused before it is parsed if it has too many digits."""

    def read(text: str) -> Any:
        try:
            return kind(limits.check_number(text))
        except ValueError as reason:
            what = "a whole number" if kind is int else "a number"
            told = str(reason) if limits.MORE in str(reason) else f"expected {what}, got {short(text)}"
            raise argparse.ArgumentTypeError(told) from None

    return read


def say(text: str) -> None:
    """A sentence on stderr."""
    print(f"orcast: {text}", file=sys.stderr, flush=True)


def as_options(text: str) -> str:
    """A sentence of the library's, with what it asks for as it is written on the command line.

    >>> as_options("model={'tree': {0.05: 'lower', 0.95: 'upper'}}, settles it (outside='clip' clips it)")
    '--model tree:0.05=lower,0.95=upper, settles it (--outside clip clips it)'
    >>> as_options("expected y= to name a column, or low=0, got 'y=2' (replay=True plays it anew)")
    "expected --y to name a column, or low=0, got 'y=2' (--replay plays it anew)"
    """

    def model(found: re.Match[str]) -> str:
        parts = re.sub(r"([\w.]+): '([^']*)'", r"\1=\2", found[2]).replace(", ", ",")
        return f"--model {found[1]}:{parts}"

    text = re.sub(r"(?<![\w'-])model=\{'([^']*)': \{([^}]*)\}\}", model, text)
    text = re.sub(rf"(?<![\w'-])({OPTIONS})='([^']*)'", r"--\1 \2", text)
    text = re.sub(rf"(?<![\w'-])({OPTIONS})=(?![\w'\"{{\[(])", r"--\1", text)
    text = re.sub(r"(?<![\w'-])issued_every=(?=[^\s,;:])", "--issued ", text).replace("issued_every=", "--issued")
    return text.replace("replay=True", "--replay").replace("nowcast=True", "--nowcast")


def need(extra: str, *modules: str) -> None:
    """One clear sentence if an optional dependency is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"expected {', '.join(missing)} to be installed, got none: pip install 'orcast[{extra}]' brings it"
        )
