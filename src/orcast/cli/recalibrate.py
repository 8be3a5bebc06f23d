"""`orcast recalibrate`: calibrated forecasts from those in a file."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING

from orcast.cli.check import verdicts
from orcast.cli.columns import add_columns, bounds_and_times, describe, names_of
from orcast.cli.common import FILE, Parts, numbers, part, say

if TYPE_CHECKING:
    from orcast.cli.tables import TableFile
    from orcast.frame import FrameState
    from orcast.frame.reader import Frame

DESCRIPTION = """\
Recalibrate the forecasts in a file: the same table comes out, with a calibrated column for each
column of forecasts and a certificate for each row.  Rows without an outcome get a forecast too.

The result goes to --output; without it, beside FILE as NAME.orcast.csv (or .parquet, as FILE is), and
to stdout if FILE is -.  The columns that were found and the verdict are printed on stderr.
Rows without a forecast pass through, with the status "no forecast"."""

EXAMPLES = """\
  orcast recalibrate cv.csv                                 writes cv.orcast.csv
  orcast recalibrate cv.parquet --report cv.html            with a report to open in a browser
  orcast recalibrate wind.csv --low 0 --high 36000 --levels 0.05,0.95
  orcast recalibrate load.csv --issued-every daily --lag 14h   issued at 10 o'clock for the next day
  orcast recalibrate today.csv --state wind.state           continues where yesterday's file ended
  orcast recalibrate model.csv --target outcomes.csv        outcomes in a table of their own
  cat cv.csv | orcast recalibrate - | head
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    told = "calibrated forecasts from those in a file"
    recalibrate = part(parts, "recalibrate", help=told, description=DESCRIPTION, examples=EXAMPLES)
    recalibrate.add_argument("file", metavar="FILE", help=FILE)
    recalibrate.add_argument("-o", "--output", metavar="FILE", help="file of the result; - is CSV to stdout")
    recalibrate.add_argument("--report", metavar="HTML", help="write a report with pictures, before and after")
    recalibrate.add_argument("--state", metavar="FILE", help="file or store to continue from, and to keep the state in")
    recalibrate.add_argument("--levels", metavar="A,B,...", help="quantiles wanted beside those that were found")
    recalibrate.add_argument("-q", "--quiet", action="store_true", help="print only what needs attention")
    add_columns(recalibrate)
    more = recalibrate.add_argument_group("more")
    outside = "outcomes beyond the bounds: left out and reported (default), or moved to the bound"
    more.add_argument("--outside", choices=("report", "clip"), default="report", help=outside)
    more.add_argument("--no-pool", action="store_true", help="series share no information (default: all do)")
    more.add_argument("--workers", type=int, metavar="N", help="threads (default: as many as cores)")
    recalibrate.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, recalibrate, write, report."""
    from orcast.cli import tables
    from orcast.frame.state import open_state

    out = options.output or (tables.PIPE if options.file == tables.PIPE else tables.beside(options.file))
    made = {"--output": out, "--report": options.report, "--state": options.state}
    tables.check_places({"FILE": options.file, "--target": options.target}, made)
    for path in (options.file, out):
        if path != tables.PIPE:
            tables.separator_of(path)
    with open_state(options.state) as state, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        table, frame = tables.open_frame(options)
        lines, attention = _write(table, frame, options, state, out)
    if not options.quiet:
        written = [path for path in made.values() if path and path != tables.PIPE]
        print("\n".join([*lines, *([f"written: {', '.join(written)}"] if written else [])]), file=sys.stderr)
    for each in warned:
        if each.category is UserWarning:
            say(f"{each.message} ({table.name})")
    return 1 if attention else 0


def _write(
    table: TableFile,
    frame: Frame,
    options: argparse.Namespace,
    state: FrameState | None,
    out: str,
) -> tuple[list[str], bool]:
    """Recalibrate, write the result and the report; lines to print, and True if rows need attention."""
    import numpy as np

    from orcast.cli import tables
    from orcast.evaluate.frames import read_rows
    from orcast.frame.options import FrameOptions
    from orcast.frame.run import run_frame
    from orcast.frame.statuses import NEEDS_ATTENTION

    asked = FrameOptions(
        levels=numbers(options.levels, "levels"),
        outside=options.outside,
        pool=not options.no_pool,
        **bounds_and_times(options),
    )
    lines: list[str] = []
    with table.located():
        run = run_frame(frame, names_of(options), asked, state, options.workers)
        result = run.result(False)
        if options.report or not options.quiet:
            told = {name: getattr(run.options, name) for name in ("low", "high", "lag", "issued_every")}
            found = read_rows(result, run.layout, **told).evaluations()
            lines = [*describe(table, run.layout, len(found[0].names)), *verdicts(found)]
    tables.write(result, out, table.separator)
    if options.report:
        from orcast.evaluate.report import write

        write(options.report, found, source=table.name)
    if state is not None:
        run.commit(state)
    return lines, any(np.isin(model.status, NEEDS_ATTENTION).any() for model in run.models)
