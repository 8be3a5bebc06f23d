"""`orcast recalibrate`: calibrated forecasts from those in a file."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

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
    from orcast.evidence import Evidence
    from orcast.panel import PanelState
    from orcast.panel.frame import Frame
    from orcast.panel.frame_run import FrameRun

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
        choices=("report", "clip", "raise"),
        default="report",
        help="outcomes beyond the bounds: left out and reported (the default), moved to the bound, or an error",
    )
    more.add_argument(
        "--replay", action="store_true", help="play a series anew if outcomes were corrected since the state"
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
    levels = _levels(options.levels)
    table = tables.read(options.file, names=text_columns(options))
    target = read_target(options)
    import numpy as np

    from orcast.evidence import collect
    from orcast.panel.state import PanelState, check_unchanged, stamp
    from orcast.panel.statuses import NEEDS_ATTENTION

    low, high = bound(options.low), bound(options.high)
    state, was = None, None
    if options.state is not None:
        was = stamp(options.state)
        state = PanelState() if was is None else PanelState.load(options.state)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        table, frame = tables.framed(table, target, y=options.y, time=options.time)
        run = tables.located(table, partial(_played, frame, options, (low, high, levels), state))
        layout, result = run.layout, tables.located(table, partial(run.result, False))
    found: list[Evidence] = []
    if options.report or not options.quiet:
        told = {"by": options.by, **run.timing._asdict()}
        found = tables.located(table, partial(collect, result, layout, **_bounds(state, low, high), **told))
    if state is not None:
        check_unchanged(options.state, was)
    tables.write(result, out, format or tables.Format("csv", table.format.separator))
    written = [] if out == tables.PIPE else [out]
    if options.report:
        report(options.report, found, table.name)
        written.append(options.report)
    lines = (
        [] if options.quiet else [*describe(table, frame, layout, len(found[0].names)), *verdicts(found, options.by)]
    )
    attention = any(np.isin(model.status, NEEDS_ATTENTION).any() for model in run.models)
    if state is not None:
        run.commit(state)
    # the state may be as large as these
    del found, result, run, frame
    if state is not None:
        # last: whoever stops before it gets the same rows again
        check_unchanged(options.state, was)
        state.save(options.state)
        written.append(options.state)
    if not options.quiet:
        print("\n".join([*lines, *([f"written: {', '.join(written)}"] if written else [])]), file=sys.stderr)
    for each in warned:
        if each.category is UserWarning:
            say(table.as_command(str(each.message)))
    return 1 if attention else 0


def _played(
    frame: Frame,
    options: argparse.Namespace,
    given: tuple[float | str | None, float | str | None, list[float] | None],
    state: PanelState | None,
) -> FrameRun:
    """What `orcast.recalibrate` does with a frame and a state, up to the result."""
    from orcast.panel.columns import find_in
    from orcast.panel.frame_run import FrameOptions, FrameRun
    from orcast.panel.workers import worker_count

    # a state can go on with forecasts alone
    layout = find_in(frame, pending=state is not None and len(state) > 0, **names_of(options))
    asked = FrameOptions(*given, outside=options.outside, timing=timing_of(options), pool=_pool(options.pool))
    run = FrameRun(frame, layout, asked.checked(), state)
    progress = sys.stderr.isatty() and not options.quiet
    run.play(worker_count(options.workers), progress, options.replay)
    run.warn(options.replay)
    return run


def _pool(given: list[str] | None) -> bool | list[str]:
    """Which series learn together."""
    return True if given is None else False if given == ["none"] else given


def _bounds(state: PanelState | None, low: float | str | None, high: float | str | None) -> dict[str, Any]:
    """The bounds, which a state knows from its beginning."""
    before = None if state is None else state.content.options
    if state is None or before is None or low is not None or high is not None:
        return {"low": low, "high": high}
    if before.by_row:
        return {"low": before.low, "high": before.high}
    sides = ({key: pair[side] for key, pair in state.content.bounds.items()} for side in (0, 1))
    low_, high_ = ({key: end if math.isfinite(end) else None for key, end in side.items()} for side in sides)
    return {"low": low_, "high": high_}


def _levels(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(level) for level in text.split(",")]
    except ValueError:
        raise ValueError(f"expected levels such as 0.05,0.5,0.95, got {text!r}") from None
