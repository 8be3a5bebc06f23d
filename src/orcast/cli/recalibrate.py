"""`orcast recalibrate`: calibrated forecasts from those in a file."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING

from orcast.cli.check import report, verdicts
from orcast.cli.column_options import (
    add_columns,
    add_groups,
    bound,
    describe,
    names_of,
    read_target,
    text_columns,
    timing_of,
)
from orcast.cli.common import Parts, part, say

if TYPE_CHECKING:
    from orcast.cli.table_files import Format, TableFile
    from orcast.frame import PanelState
    from orcast.frame.reader import Frame

DESCRIPTION = """\
Recalibrate the forecasts in a file: the same table comes out, with a calibrated column for each
column of forecasts and a certificate for each row.  Rows without an outcome get a forecast too.

The result goes to --out; without it, beside FILE as NAME.orcast.csv (or .parquet, as FILE is), and
to stdout if FILE is -.  What was found, and how good it was before and after, is printed on stderr.
Rows are never lost: those without a forecast pass through, and the status column says so."""

EXAMPLES = """\
  orcast recalibrate cv.csv                                 writes cv.orcast.csv
  orcast recalibrate cv.parquet --report cv.html            with a report to open in a browser
  orcast recalibrate wind.csv --low 0 --high 36000 --levels 0.05,0.95
  orcast recalibrate load.csv --issued daily --lag 14h      issued at 10 o'clock for the next day
  orcast recalibrate today.csv --state wind.state           goes on where yesterday's file ended
  orcast recalibrate model-output.csv --target target.csv   a hub's table, and its outcomes
  cat cv.csv | orcast recalibrate - | head
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    recalibrate = part(
        parts,
        "recalibrate",
        help="calibrated forecasts from those in a file",
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    what = "a table, .csv, .csv.gz, .tsv or .parquet, with a row for each forecast; - is CSV from stdin"
    recalibrate.add_argument("file", metavar="FILE", help=what)
    recalibrate.add_argument("--out", metavar="FILE", help="where the result goes, by its ending; - is CSV to stdout")
    recalibrate.add_argument("--report", metavar="HTML", help="write a report with pictures, before and after")
    recalibrate.add_argument("--state", metavar="FILE", help="go on from this state, and keep it for the next file")
    recalibrate.add_argument("--levels", metavar="A,B,...", help="quantiles wanted beside those that were found")
    recalibrate.add_argument("--quiet", action="store_true", help="print only what needs attention")
    add_columns(recalibrate)
    add_groups(recalibrate)
    more = recalibrate.add_argument_group("more")
    more.add_argument(
        "--outside",
        choices=("report", "clip"),
        default="report",
        help="outcomes beyond the bounds: left out and reported (the default), or moved to the bound",
    )
    more.add_argument(
        "--pool",
        metavar="COLUMN",
        action="append",
        help="series that agree in it learn together; may be given several times; none: each series by itself "
        "(default: all together)",
    )
    more.add_argument("--workers", type=int, metavar="N", help="threads (default: as many as cores)")
    recalibrate.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, play, write, report."""
    from orcast.cli import table_files as tables

    if options.file != tables.PIPE:
        tables.format_of(options.file)
    out = options.out or (tables.PIPE if options.file == tables.PIPE else tables.beside(options.file))
    for option, path in (("--out", out), ("--report", options.report), ("--state", options.state)):
        if path and path != tables.PIPE:
            tables.check_place(path, option)
    format = None if out == tables.PIPE else tables.format_of(out)
    tables.check_apart(
        {
            "FILE": options.file,
            "--target": options.target,
            "--out": out,
            "--report": options.report,
            "--state": options.state,
        }
    )
    table = tables.read(options.file, names=text_columns(options))
    target = read_target(options)
    from orcast.frame.state import open_state

    with open_state(options.state) as state, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        begun = state is not None and state.content.options is not None
        table, frame = tables.framed(table, target, y=options.y, time=options.time, pending=begun)
        lines, attention = _write(table, frame, options, state, out, format)
    if not options.quiet:
        paths = [path for path in (out, options.report, options.state) if path and path != tables.PIPE]
        print("\n".join([*lines, *([f"written: {', '.join(paths)}"] if paths else [])]), file=sys.stderr)
    for each in warned:
        if each.category is UserWarning:
            say(table.as_command(str(each.message)))
    return 1 if attention else 0


def _write(
    table: TableFile,
    frame: Frame,
    options: argparse.Namespace,
    state: PanelState | None,
    out: str,
    format: Format | None,
) -> tuple[list[str], bool]:
    """Recalibrate, write the result and the report; lines to print, and whether rows need attention."""
    import numpy as np

    from orcast.cli import table_files as tables
    from orcast.evidence import collect
    from orcast.frame.options import FrameOptions
    from orcast.frame.run import play_frame
    from orcast.frame.statuses import NEEDS_ATTENTION

    asked = FrameOptions(
        bound(options.low),
        bound(options.high),
        _levels(options.levels),
        outside=options.outside,
        timing=timing_of(options),
        pool=_pool(options.pool),
    )
    progress = sys.stderr.isatty() and not options.quiet
    names = names_of(options)
    run = tables.located(table, lambda: play_frame(frame, names, asked, state, options.workers, progress))
    layout, result = run.layout, tables.located(table, lambda: run.result(False))
    lines: list[str] = []
    if options.report or not options.quiet:
        told = {"by": options.by, "low": run.options.low, "high": run.options.high, **run.timing._asdict()}
        found = tables.located(table, lambda: collect(result, layout, **told))
        lines = [*describe(table, frame, layout, len(found[0].names)), *verdicts(found, options.by)]
    tables.write(result, out, format or tables.Format("csv", table.format.separator))
    if options.report:
        report(options.report, found, table.name)
    if state is not None:
        run.commit(state)
    return lines, any(np.isin(model.status, NEEDS_ATTENTION).any() for model in run.models)


def _pool(given: list[str] | None) -> bool | list[str]:
    """Which series learn together."""
    return True if given is None else False if given == ["none"] else given


def _levels(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(level) for level in text.split(",")]
    except ValueError:
        raise ValueError(f"expected levels such as 0.05,0.5,0.95, got {text!r}") from None
