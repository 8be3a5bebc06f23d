"""Help, messages and checks that the parts of the command share."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orcast.store import Store

# Type of argparse's list of parts, which is not public.
Parts = Any
FILE = "a table, .csv, .tsv or .parquet, with a row for each forecast; - is stdin"


class Examples(argparse.RawDescriptionHelpFormatter):
    """Help with examples as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def part(parts: Parts, name: str, *, help: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Add a part to the command, with examples in its help."""
    made: argparse.ArgumentParser = parts.add_parser(
        name, help=help, description=description, epilog=f"examples:\n{examples}", formatter_class=Examples
    )
    return made


def say(text: str) -> None:
    """Print a sentence on stderr."""
    print(f"orcast: {printable(text)}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text on one line, without characters that a terminal would take as commands."""
    return "".join(each if each.isprintable() else " " for each in text)


def need(extra: str, *modules: str) -> None:
    """Check that an optional dependency is installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"expected {', '.join(missing)} to be installed, got none: pip install 'orcast[{extra}]' brings it"
        )


def stored(url: str) -> Store:
    """Open a store that exists."""
    from orcast.store import Store

    if not url.startswith("postgres") and not Path(url.removeprefix("sqlite:///")).is_file():
        raise FileNotFoundError(f"expected the file of a store, got none: {url}")
    return Store(url)


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers separated by commas."""
    try:
        return None if text is None else [float(each) for each in text.split(",")]
    except ValueError:
        raise ValueError(f"expected numbers such as 0.05,0.5,0.95 as --{option}, got {text!r}") from None
