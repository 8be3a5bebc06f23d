"""`orcast check`: verdict on the forecasts in a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
from orcast.cli.common import Parts, as_options, part, say

if TYPE_CHECKING:
    from orcast.evidence import Evidence

EXAMPLES = """\
  orcast check cv.csv                          columns are found by their names
  orcast check cv.parquet --report cv.html     with pictures
  orcast check cv.csv --by hour --by weather   groups of rows side by side
  orcast check wind.csv --y power --low 0 --high 36000
  zcat old.csv.gz | orcast check -
  orcast check cv.csv --fail                   for a schedule: exits with 1 if a model is miscalibrated
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    check = part(
        parts,
        "check",
        help="say how well calibrated forecasts are",
        description="Say how well calibrated the forecasts in a file are.  Nothing is changed.",
        examples=EXAMPLES,
    )
    check.add_argument(
        "file",
        metavar="FILE",
        help="a table, .csv, .csv.gz, .tsv or .parquet, with a row for each forecast; - is stdin",
    )
    check.add_argument("--report", metavar="HTML", help="write a report with pictures")
    check.add_argument("--fail", action="store_true", help="exit with 1 if a model is significantly miscalibrated")
    add_columns(check)
    add_groups(check)
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, judge, report."""
    from orcast.cli import table_files as tables

    if options.report:
        tables.check_place(options.report, "--report")
        tables.check_apart({"FILE": options.file, "--target": options.target, "--report": options.report})
    table = tables.read(options.file, names=text_columns(options))
    target = read_target(options)
    from orcast.evidence import collect, faults
    from orcast.frame.reader import doubts, find_in, repeated_rows

    table, frame = tables.framed(table, target, y=options.y, time=options.time)
    layout = tables.located(table, lambda: find_in(frame, **names_of(options)))
    low, high = bound(options.low), bound(options.high)
    groups = {"by": options.by, **timing_of(options)._asdict()}
    found = tables.located(table, lambda: collect(frame, layout, low=low, high=high, recalibrated=False, **groups))
    print("\n".join(describe(table, frame, layout, len(found[0].names))), file=sys.stderr)
    for doubt in [*doubts(frame, layout), *repeated_rows(frame, layout)]:
        say(table.as_command(doubt))
    print("\n".join(verdicts(found, options.by)))
    if options.report:
        report(options.report, found, table.name)
        print(f"written: {options.report}", file=sys.stderr)
    if options.fail and any(faults(evidence) for evidence in found):
        return 1
    return 1 if any(evidence.outside for evidence in found) else 0


def verdicts(found: Sequence[Evidence], by: Sequence[str] = ()) -> list[str]:
    """Sentences on each model, then the groups that were asked for, a line each."""
    from orcast.evidence import verdict

    lines = []
    for evidence in found:
        own = [*map(as_options, verdict(evidence)), *group_lines(evidence, by)]
        lines += own if len(found) == 1 else [f"{evidence.model or 'forecast'}:", *(f"  {line}" for line in own)]
    return lines


def group_lines(evidence: Evidence, by: Sequence[str]) -> list[str]:
    """Groups side by side, a line each: rows, coverage, loss and series made worse."""
    from orcast.evidence import by_group
    from orcast.evidence.accuracy import loss_name
    from orcast.evidence.statistics import level_name

    lines: list[str] = []
    for table in (by_group(evidence, grouping) for grouping in evidence.by if grouping.name in by):
        columns = [[table.name, *table.labels], ["rows", *(f"{count:,.0f}" for count in table.rows)]]
        if table.share is not None:
            columns.append([f"{level_name(table.share)} covered", *_arrows(table.coverage, ".1%")])
        columns.append([loss_name(evidence), *_arrows(table.loss, ".4g")])
        if table.change is not None:
            pairs = zip(table.change.worse, table.change.series, strict=True)
            columns.append(["series worse", *(f"{worse:,} of {count:,}" for worse, count in pairs)])
        wide = [max(map(len, column)) for column in columns]
        rows = zip(*columns, strict=True)
        lines += ["  ".join(text.rjust(w) for text, w in zip(row, wide, strict=True)) for row in rows]
    return lines


def _arrows(sides: dict[str, Any], form: str) -> list[str]:
    """Numbers of groups as text, before and after."""
    return [" -> ".join(f"{value:{form}}" for value in values) for values in zip(*sides.values(), strict=True)]


def report(path: str, found: Sequence[Evidence], source: str) -> None:
    """Write the report, whole or not at all."""
    from orcast import report as pages
    from orcast.persistence import replacing

    with replacing(path) as temporary:
        pages.write(temporary, found, source=source)
