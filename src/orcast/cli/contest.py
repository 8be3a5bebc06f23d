"""`orcast contest`: every rival on every stream, and every loss shown."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from orcast.cli.common import Parts, file, limited, need, part, say
from orcast.cli.reproduce import print_table, progress_bar, write_page

EXAMPLES = """\
  orcast contest --quick                          a few short streams, within a minute
  orcast contest --out results/contest            everything; goes on where it was stopped
  orcast contest --kind binary --method my.py     one class, with a method of your own
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    from orcast.contest.stream import KINDS

    contest = part(
        parts,
        "contest",
        help="play orcast and its rivals on many streams: tables and a page with every loss",
        description="Play orcast, with its default settings, and every rival on many streams: on the experts\n"
        "as given, and on experts with the same memory of recent errors.  Results are kept as a Parquet table, from\n"
        "which a run that was stopped goes on.",
        examples=EXAMPLES,
    )
    contest.add_argument("--quick", action="store_true", help="few and short streams")
    told = f"only streams of this kind, may be repeated: {', '.join(KINDS)}"
    contest.add_argument("--kind", action="append", choices=KINDS, metavar="KIND", help=told)
    file(contest, "--data", folder=True, metavar="FOLDER", help="where public series are; else ORCAST_DATA")
    own = "streams of your own: a file each, beside the others"
    file(contest, "--folder", folder=True, metavar="FOLDER", action="append", help=own)
    mine = "a Python file with METHODS = {name: factory}; they play too"
    file(contest, "--method", metavar="FILE", action="append", help=mine)
    file(contest, "--out", folder=True, metavar="FOLDER", default="contest", help="where files go (default: contest)")
    file(
        contest, "--page", metavar="FILE", help="tables also in a page in Markdown, below its mark '<!-- produced -->'"
    )
    contest.add_argument(
        "--workers", type=limited(int), default=os.cpu_count() or 1, help="processes (default: as many as cores)"
    )
    contest.add_argument("--again", action="store_true", help="play everything anew, whatever is in the folder")
    contest.set_defaults(run=run)


def one(name: str, given: Sequence[str] | None) -> str | None:
    """The only one that was given, if any."""
    if given and len(given) > 1:
        raise ValueError(f"expected --{name} once, got {', '.join(given)}")
    return given[0] if given else None


def chosen(catalogue: Callable[[], Sequence[Any]], kinds: tuple[str, ...]) -> list[Any]:
    """The entries of some kinds, all if none is named."""
    found = [entry for entry in catalogue() if not kinds or entry.kind in kinds]
    if not found:
        raise ValueError(f"expected streams of the kinds {', '.join(kinds)}, got none")
    return found


def run(options: argparse.Namespace) -> int:
    """Play, and show what came of it."""
    need("cli", "polars", "rich")
    if options.workers < 1:
        raise ValueError(f"expected at least 1 worker, got {options.workers}")
    from rich.console import Console

    from orcast.contest import page
    from orcast.contest.catalogue import catalogue, left_out, own_streams
    from orcast.contest.results import is_failure
    from orcast.contest.run import run as play

    console = Console()
    begin = time.perf_counter()
    kinds = tuple(dict.fromkeys(options.kind or ()))
    folder, method = one("folder", options.folder), one("method", options.method)
    own, notes = own_streams(folder)
    for note in [*([] if options.quick else left_out(options.data)), *notes]:
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    if folder is not None and not own:
        raise ValueError(f"expected forecasts with outcomes in a file of {folder!r}, got none")
    for entry in own:
        console.print(f"read: {entry.name}, {entry.kind}, {entry.rows:,} rows", highlight=False, markup=False)
    streams = partial(chosen, partial(catalogue, options.data, folder, quick=options.quick), kinds)
    with progress_bar(console, "contest") as progress:
        contest = play(
            streams, options.out, methods=method, workers=options.workers, again=options.again,
            progress=progress,
        )  # fmt: skip
    show(console, contest, [entry.name for entry in own])
    paths = page.write(options.out, contest)
    if options.page:
        write_page(Path(options.page), [page.in_markdown(contest)], time.perf_counter() - begin, "orcast contest")
        paths.append(Path(options.page))
    console.print(f"written: {', '.join(map(str, paths))}", soft_wrap=True, highlight=False)
    console.print(f"{time.perf_counter() - begin:.0f} s", highlight=False)
    failed = sorted({row["method"] for row in contest.rows if is_failure(row)})
    if failed:
        say(f"failed: {', '.join(failed)}; results are written without what failed, and the page says why")
    return int(bool(failed))


def show(console: Any, contest: Any, own: Sequence[str] = ()) -> None:
    """The tables, where orcast is not first, and where it is worse than doing nothing."""
    from orcast.contest import tables

    found = tables.standings(contest.rows, contest.methods)
    for standing in found:
        print_table(console, tables.result_table(standing, tables.SHORT))
    console.print("[bold]Where orcast is[/bold]")
    for standing in found:
        style = None if standing.place() == 1 else "red"
        console.print(tables.verdict(standing), style=style, highlight=False, soft_wrap=True, markup=False)
    streams = tables.one_by_one(contest.rows)
    if own:
        console.print("\n[bold]Your streams[/bold]")
        for told in tables.about_own(streams, own):
            console.print(told, highlight=False, soft_wrap=True, markup=False)
    worse = tables.worst_cases(streams)
    console.print("\n[bold]Where it is worse than the expert as given[/bold]")
    for told in worse or ["nowhere"]:
        console.print(told, style="red" if worse else None, highlight=False, soft_wrap=True, markup=False)
    for told in tables.failures(streams):
        console.print(told, style="red", highlight=False, soft_wrap=True, markup=False)
    console.print()
