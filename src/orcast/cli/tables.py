"""Tables in files: CSV and Parquet, read and written, with rows numbered as in the file."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from orcast.cli.columns import text_columns
from orcast.cli.common import need
from orcast.persistence import replacing
from orcast.validation import line_numbers

if TYPE_CHECKING:
    import polars as pl

    from orcast.frame.reader import Frame

PIPE = "-"
# Texts of a missing value.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
# Separators by the ending of a name, None for Parquet.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".parquet": None}


@dataclass(frozen=True)
class TableFile:
    """Table that was read; `first` is the line of its first row, if rows are lines."""

    frame: pl.DataFrame
    name: str
    separator: str | None
    first: int | None

    @contextmanager
    def located(self) -> Iterator[None]:
        """Name lines of the file in messages, and the file in errors."""
        try:
            with line_numbers(self.first):
                yield
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error} ({self.name})") from error


def is_table(path: str) -> bool:
    """True if a name is that of a table."""
    return Path(path).suffix.lower() in SEPARATORS


def separator_of(path: str) -> str | None:
    """Separator of a table of this name; None for Parquet."""
    if not is_table(path):
        raise ValueError(f"expected a file that ends in .csv, .tsv or .parquet, got {path}")
    return SEPARATORS[Path(path).suffix.lower()]


# --- reading ---


def read(path: str, *, names: Collection[str] = (), growing: bool = False) -> TableFile:
    """Read a table from a file, or CSV from stdin if it is called "-"; columns with these names are text."""
    need("cli", "polars")
    import polars as pl

    if path == PIPE:
        if sys.stdin.isatty():
            raise ValueError("expected a table through a pipe for -, got a terminal")
        return _csv(sys.stdin.buffer.read(), ",", "stdin", names)
    separator = separator_of(path)
    if not Path(path).is_file():
        what = "a folder" if Path(path).is_dir() else "nothing by that name"
        raise FileNotFoundError(f"expected a file, got {what}: {path}")
    if separator is not None:
        content = Path(path).read_bytes()
        # the last line of a growing table is left out until it has an end
        return _csv(content[: content.rfind(b"\n") + 1] if growing else content, separator, path, names)
    try:
        return TableFile(pl.read_parquet(path), path, None, None)
    except (pl.exceptions.PolarsError, OSError) as reason:
        why = shorten(str(reason), 100, placeholder="...")
        raise ValueError(f"expected a Parquet file, got one that cannot be read ({why}): {path}") from None


def _csv(content: bytes, separator: str, name: str, names: Collection[str]) -> TableFile:
    import polars as pl

    head = content.partition(b"\n")[0].decode("utf-8-sig", errors="replace").strip()
    if not head:
        raise ValueError(f"expected a table with a line of column names, got an empty file: {name}")
    if separator == ",":
        separator = max(",;\t|", key=lambda mark: (head.count(mark), mark == ","))
    columns = next(csv.reader([head], delimiter=separator))
    # names of series are text, even if they look like numbers: 007 stays 007
    text = {column: pl.String for column in columns if column in names}
    try:
        frame = pl.read_csv(
            content, separator=separator, infer_schema_length=None, null_values=MISSING, schema_overrides=text
        )
    except (pl.exceptions.PolarsError, OSError) as reason:
        why = shorten(str(reason), 100, placeholder="...")
        raise ValueError(f"expected a CSV file in UTF-8, got one that cannot be read ({why}): {name}") from None
    if frame.height == 0:
        raise ValueError(f"expected at least one row below the names of the columns, got none: {name}")
    # columns of missing values alone are read as numbers
    empty = [each for each in frame.columns if frame[each].null_count() == frame.height]
    frame = frame.with_columns(pl.col(each).cast(pl.Float64) for each in empty)
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return TableFile(frame, name, separator, 2 if lines == frame.height + 1 else None)


def open_frame(options: argparse.Namespace, *, growing: bool = False) -> tuple[TableFile, Frame]:
    """Read the table of a command and its outcomes, as a frame."""
    names = text_columns(options)
    table = read(options.file, names=names, growing=growing)
    target = None if options.target is None else read(options.target, names=names, growing=growing).frame
    from orcast.frame.reader import Frame

    with table.located():
        return table, Frame(table.frame, target, y=options.y, time=options.time)


# --- writing ---


def beside(path: str) -> str:
    """Default place of the result of a file."""
    return str(Path(path).with_suffix(f".orcast{Path(path).suffix}"))


def check_places(inputs: dict[str, str | None], outputs: dict[str, str | None]) -> None:
    """Check, before hours of work, that outputs can be written and that none is written over another file."""
    seen: dict[Path, str] = {}
    for option, path in (inputs | outputs).items():
        if not path or path == PIPE or "://" in path:
            continue
        target = Path(path)
        if option in outputs and (target.is_dir() or not target.absolute().parent.is_dir()):
            raise ValueError(f"expected a file in an existing folder as {option}, got {path}")
        other = seen.setdefault(target.resolve(), option)
        if other != option:
            raise ValueError(f"expected {other} and {option} in files of their own, got {path} for both")


def write(frame: pl.DataFrame, path: str, separator: str | None = None) -> None:
    """Write a table to a file, whole or not at all, or as CSV with this separator to stdout if it is called "-"."""
    from polars.exceptions import PolarsError

    if path == PIPE:
        sys.stdout.flush()
        sys.stdout.buffer.write(frame.write_csv(separator=separator or ",").encode())
        sys.stdout.buffer.flush()
        return
    mark = separator_of(path)
    with replacing(path) as temporary:
        try:
            if mark is None:
                frame.write_parquet(temporary)
            else:
                frame.write_csv(temporary, separator=mark)
        except PolarsError as reason:
            raise OSError(f"{reason}: {path}") from None
