"""Tables in files: CSV and Parquet, read and written, with rows numbered as in the file."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orcast.cli.common import as_options, need
from orcast.persistence import replacing
from orcast.validation import short

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from orcast.frame.reader import Frame

PIPE = "-"
# What stands for a missing value in text.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
SEPARATORS = {".csv": None, ".tsv": "\t", ".txt": None}
PARQUET = (".parquet", ".pq")
MAGIC = b"PAR1"


@dataclass(frozen=True)
class Format:
    """How a table is written in a file."""

    kind: str  # "csv" or "parquet"
    separator: str = ","
    zipped: bool = False


@dataclass(frozen=True)
class TableFile:
    """A table that was read: `name` is its file's, `first` the line of its first row, if rows are lines.

    `places` are the rows of the table where those that are spoken of begin, if these are others.
    """

    frame: pl.DataFrame
    name: str
    format: Format
    first: int | None
    places: NDArray[np.intp] | None = None

    def located(self, text: str) -> str:
        """A sentence in which rows are numbered as in the file: lines of text, else rows from 1.

        >>> TableFile(None, "a.csv", Format("csv"), 2).located("got 7.5 in row 0, and rows 3 and 4")
        'got 7.5 in line 2, and lines 5 and 6'
        """
        word, first = ("row", 1) if self.first is None else ("line", self.first)

        def place(row: int) -> int:
            return first + (row if self.places is None or row >= len(self.places) else int(self.places[row]))

        def renamed(found: re.Match[str]) -> str:
            numbers = re.sub(r"\d+", lambda n: str(place(int(n[0]))), found["numbers"])
            return f"{word}{found['s']}{found['mark']}{numbers}"

        number = r"\d+(?:(?:, | and |, and | or )\d+)*"
        return re.sub(rf"\brow(?P<s>s?)(?P<mark>:? \[?)(?P<numbers>{number})\b", renamed, text)

    def as_command(self, text: str) -> str:
        """A message of the library in the terms of the command: rows as in the file, options as on the command line."""
        return as_options(self.located(text))

    def stray(self, complaint: str) -> str | None:
        """Place of the first value that is no number, if a complaint is about a column of text."""
        import polars as pl

        for name, kind in self.frame.schema.items():
            if kind == pl.String and repr(name) in complaint and "numbers" in complaint:
                values = self.frame[name]
                bad = values.is_not_null() & values.str.strip_chars().cast(pl.Float64, strict=False).is_null()
                if bad.any():
                    row = int(bad.arg_max() or 0)
                    got = f"got {short(values[row])} in row {row}"
                    return self.located(f"expected numbers with a decimal point in column {name!r}, {got}")
        return None


def format_of(path: str) -> Format:
    """The format that a file's name says, or one clear sentence."""
    suffixes = [part.lower() for part in Path(path).suffixes[-2:]]
    zipped = suffixes[-1:] == [".gz"]
    last = (suffixes[:-1] if zipped else suffixes)[-1:]
    if last and last[0] in SEPARATORS:
        return Format("csv", SEPARATORS[last[0]] or ",", zipped)
    if last and last[0] in PARQUET and not zipped:
        return Format("parquet")
    raise ValueError(f"expected a file that ends in .csv, .csv.gz, .tsv or .parquet, got {path}")


# --- reading ---


def read(path: str, *, names: Collection[str] = ()) -> TableFile:
    """Read a table from a file, or from stdin if it is called "-"; columns with these names are text."""
    need("cli", "polars")
    if path == PIPE:
        if sys.stdin.isatty():
            raise ValueError("expected a table through a pipe for -, got a terminal")
        content, name = sys.stdin.buffer.read(), "stdin"
        format = Format("parquet" if content.startswith(MAGIC) else "csv")
    else:
        format, name = format_of(path), path
        if not Path(path).is_file():
            what = "a folder" if Path(path).is_dir() else "nothing by that name"
            raise FileNotFoundError(f"expected a file, got {what}: {path}")
        content = Path(path).read_bytes()
    if format.zipped:
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile) as reason:
            raise ValueError(f"expected a file zipped by gzip, got one that is not whole ({reason}): {path}") from None
    return _parquet(content, name) if format.kind == "parquet" else _csv(content, format, name, names)


def _parquet(content: bytes, name: str) -> TableFile:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as reason:
        raise ValueError(f"expected a Parquet file, got one that cannot be read ({_first(reason)}): {name}") from None
    return TableFile(frame, name, Format("parquet"), None)


def _csv(content: bytes, format: Format, name: str, names: Collection[str]) -> TableFile:
    import polars as pl

    head = content.partition(b"\n")[0].decode("utf-8-sig", errors="replace").strip()
    if not head:
        raise ValueError(f"expected a table with a line of column names, got an empty file: {name}")
    separator = format.separator
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
        raise ValueError(
            f"expected a CSV file in UTF-8, got one that cannot be read ({_first(reason)}): {name}"
        ) from None
    if frame.height == 0:
        raise ValueError(f"expected at least one row below the names of the columns, got none: {name}")
    # columns of missing values alone are read as numbers
    empty = [each for each in frame.columns if frame[each].null_count() == frame.height]
    frame = frame.with_columns(pl.col(each).cast(pl.Float64) for each in empty)
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    first = 2 if lines == frame.height + 1 else None
    return TableFile(frame, name, Format("csv", separator, format.zipped), first)


def _first(reason: BaseException) -> str:
    """The first sentence of a long message."""
    text = (str(reason).strip() or type(reason).__name__).splitlines()[0]
    return text if len(text) <= 100 else f"{text[:97]}..."


# --- writing ---


def beside(path: str) -> str:
    """Where the result of a file goes, by default.

    >>> beside("data/wind.csv"), beside("wind.csv.gz"), beside("wind.parquet")
    ('data/wind.orcast.csv', 'wind.orcast.csv.gz', 'wind.orcast.parquet')
    """
    whole = Path(path)
    endings = "".join(whole.suffixes[-2:] if whole.suffix.lower() == ".gz" else whole.suffixes[-1:])
    return str(whole.with_name(f"{whole.name[: len(whole.name) - len(endings)]}.orcast{endings}"))


def check_place(path: str, option: str) -> None:
    """A file that can be written, or one clear sentence, before hours of work."""
    target = Path(path)
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise ValueError(f"expected a file in an existing folder as {option}, got {path}")


def check_apart(paths: dict[str, str | None]) -> None:
    """Files that are all different, so that none is written over another."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if not path or path == PIPE:
            continue
        other = seen.setdefault(Path(path).resolve(), option)
        if other != option:
            raise ValueError(f"expected {other} and {option} in files of their own, got {path} for both")


def write(frame: pl.DataFrame, path: str, format: Format) -> None:
    """Write a table to a file, whole or not at all, or to stdout if it is called "-"."""
    if path == PIPE:
        sys.stdout.flush()
        _write_to(frame, sys.stdout.buffer, format)
        sys.stdout.buffer.flush()
        return
    opened: Any = gzip.open if format.zipped else open
    with replacing(path) as temporary, opened(temporary, "wb") as file:
        _write_to(frame, file, format)


def _write_to(frame: pl.DataFrame, file: Any, format: Format) -> None:
    if format.kind == "parquet":
        frame.write_parquet(file)
        return
    for number, part in enumerate(frame.iter_slices(50_000)):  # the whole as text would double the memory
        file.write(part.write_csv(separator=format.separator, include_header=number == 0).encode())


def framed(
    table: TableFile, target: pl.DataFrame | None, *, pending: bool = False, **names: str | None
) -> tuple[TableFile, Frame]:
    """A table as a frame with its outcomes; the table then numbers rows as the frame counts them."""
    from orcast.frame.reader import Frame

    frame: Frame = located(table, lambda: Frame(table.frame, target, pending=pending, **names))
    return (table if frame.spread is None else dataclasses.replace(table, places=frame.spread.rows)), frame


def located(table: TableFile, act: Callable[[], Any]) -> Any:
    """What an act gives; its errors are in the terms of the command, with the file's name."""
    try:
        return act()
    except (TypeError, ValueError) as reason:
        text = table.as_command(str(reason))
        raise type(reason)(f"{table.stray(text) or text} ({table.name})") from reason
