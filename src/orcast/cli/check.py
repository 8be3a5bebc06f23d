"""`orcast check`: how well calibrated are the forecasts in a file?"""

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
from orcast.cli.common import Parts, part, say

if TYPE_CHECKING:
    from orcast.evidence import Evidence

EXAMPLES = """\
  orcast check cv.csv                          columns are found by their names
  orcast check cv.parquet --report cv.html     with pictures
  orcast check cv.csv --by hour --by weather   groups of rows side by side
  orcast check wind.csv --y power --low 0 --high 36000
  zcat old.csv.gz | orcast check -
  orcast check cv.csv --fail                   for a schedule: exits with 1 if something is clearly wrong
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
    check.add_argument("--fail", action="store_true", help="exit with 1 if a model's calibration is clearly wrong")
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
    from orcast.panel.checks import doubts
    from orcast.panel.columns import find_in

    table, frame = tables.framed(table, target, y=options.y, time=options.time)
    layout = tables.located(table, lambda: find_in(frame, **names_of(options)))
    low, high = bound(options.low), bound(options.high)
    groups = {"by": options.by, **timing_of(options)._asdict()}
    found = tables.located(table, lambda: collect(frame, layout, low=low, high=high, recalibrated=False, **groups))
    print("\n".join(describe(table, frame, layout, len(found[0].names))), file=sys.stderr)
    for doubt in doubts(frame, layout):
        say(table.as_command(doubt))
    print("\n".join(verdicts(found, options.by)))
    if options.report:
        report(options.report, found, table.name)
        print(f"written: {options.report}", file=sys.stderr)
    if options.fail and any(faults(evidence) for evidence in found):
        return 1
    return 1 if any(evidence.outside for evidence in found) else 0


def verdicts(found: Sequence[Evidence], by: Sequence[str] = ()) -> list[str]:
    """What the numbers say of each model, a sentence a line; then the groups that were asked for, a line each."""
    from orcast.evidence import assumptions, verdict

    if len(found) == 1:
        return [*verdict(found[0]), *group_lines(found[0], by)]
    # what is assumed of all models is said once
    lines = list(dict.fromkeys(sentence for evidence in found for sentence in assumptions(evidence)))
    for evidence in found:
        lines.append(f"{evidence.model or 'forecast'}:")
        told = [*verdict(evidence)[len(assumptions(evidence)) :], *group_lines(evidence, by)]
        lines += [f"  {line}" for line in told]
    return lines


def group_lines(evidence: Evidence, by: Sequence[str]) -> list[str]:
    """Groups side by side, a line each: rows, coverage and loss."""
    from orcast.evidence import by_group
    from orcast.evidence.accuracy import loss_name
    from orcast.evidence.statistics import level_name

    lines: list[str] = []
    for table in (by_group(evidence, grouping) for grouping in evidence.by if grouping.name in by):
        columns = [[table.name, *table.labels], ["rows", *(f"{count:,.0f}" for count in table.rows)]]
        if table.share is not None:
            covered = _both(table.coverage_before, table.coverage_after, ".1%")
            columns.append([f"{level_name(table.share)} covered", *covered])
        columns.append([loss_name(evidence), *_both(table.loss_before, table.loss_after, ".4g")])
        wide = [max(map(len, column)) for column in columns]
        rows = zip(*columns, strict=True)
        lines += ["  ".join(text.rjust(w) for text, w in zip(row, wide, strict=True)) for row in rows]
    return lines


def _both(before: Any, after: Any, form: str) -> list[str]:
    """Numbers of groups as text, before and after."""
    if after is None:
        return [f"{each:{form}}" for each in before]
    return [f"{a:{form}} -> {b:{form}}" for a, b in zip(before, after, strict=True)]


def report(path: str, found: Sequence[Evidence], source: str) -> None:
    """Write the report, whole or not at all."""
    from orcast import report as pages
    from orcast.persistence import replacing

    with replacing(path) as temporary:
        pages.write(temporary, found, source=source)
