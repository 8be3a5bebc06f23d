"""`python -m research compare`: orcast and its rivals on many streams."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from research.comparison import jobs, tables
from research.comparison.catalogue import catalogue, left_out
from research.comparison.stream import KINDS
from research.output import progress_lines, relative_folder, require, write_page

EXAMPLES = """examples:
  python -m research compare --quick                        a few short streams
  python -m research compare --out results/comparison       everything
  python -m research compare --kind binary --method my.py   one kind of stream, with a method of your own
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Run orcast, with default settings, and its rivals on the base forecasts of many streams."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="few and short streams")
    kinds = f"only streams of this kind, may be repeated: {', '.join(KINDS)}"
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="KIND", help=kinds)
    parser.add_argument("--data", metavar="FOLDER", help="folder of public series (default: ORCAST_DATA)")
    parser.add_argument("--stored", metavar="FOLDER", help="folder of stored forecasts (default: ORCAST_YARDSTICK)")
    parser.add_argument("--method", metavar="FILE", help="Python file with METHODS = {name: factory} to add")
    parser.add_argument("--out", metavar="FOLDER", default="comparison", help="folder of results (default: comparison)")
    parser.add_argument("--page", metavar="FILE", help="write the tables into a page, below its mark <!-- produced -->")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")


def run(options: argparse.Namespace) -> int:
    """Run the comparison and show its results; return 1 if a method failed."""
    require("polars")
    begin = time.perf_counter()
    for note in [] if options.quick else left_out(options.data):
        print(note)
    kinds = options.kind or KINDS
    entries = [e for e in catalogue(options.data, options.stored, quick=options.quick) if e.kind in kinds]
    if not entries:
        raise ValueError(f"expected streams of the kinds {', '.join(kinds)}, got none")
    progress = progress_lines("compare")
    comparison = jobs.run(entries, methods=options.method, workers=options.workers, progress=progress)
    show(comparison)
    paths = write(Path(options.out), comparison)
    if options.page:
        seconds = time.perf_counter() - begin
        folder = relative_folder(options.page, str(Path(options.out) / "tables"))
        write_page(Path(options.page), [tables.markdown(comparison, folder)], seconds, "python -m research compare")
        paths.append(Path(options.page))
    print(f"written: {', '.join(map(str, paths))}")
    print(f"{time.perf_counter() - begin:.0f} s")
    return int(any(map(jobs.is_failure, comparison.rows)))


def show(comparison: jobs.Comparison) -> None:
    """Print the summary, the streams on which orcast is worse than the base forecast, and failures."""
    print(tables.summary(tables.rankings(comparison)).section())
    print("\nStreams on which orcast is worse than the base forecast:")
    print("\n".join([*(tables.worse_than_base(comparison.rows) or ["none"]), *tables.failures(comparison.rows)]))


def write(folder: Path, comparison: jobs.Comparison) -> list[Path]:
    """Write all tables as CSV, and the rankings in a page in Markdown; return the paths."""
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.csv"):
        old.unlink()
    found = tables.rankings(comparison)
    for table in (tables.summary(found), *(ranking.table() for ranking in found)):
        table.write(place)
    page = folder / "tables.md"
    page.write_text(tables.markdown(comparison), encoding="utf-8")
    return [page, place, tables.stream_table(comparison.rows).write(folder)]
