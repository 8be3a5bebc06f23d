"""`orcast check`: verdict on the forecasts in a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orcast.cli.columns import add_columns, bounds_and_times, describe, names_of
from orcast.cli.common import FILE, Parts, part

if TYPE_CHECKING:
    from orcast.evaluate import Evaluation

EXAMPLES = """\
  orcast check cv.csv                          columns are found by their names
  orcast check cv.parquet --report cv.html     with pictures
  orcast check wind.csv --y power --low 0 --high 36000
  zcat old.csv.gz | orcast check -
  orcast check cv.csv --json                   the verdict and its numbers, for programs
  orcast check cv.csv --fail                   for a schedule: exits with 1 if a model or a series is miscalibrated
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    told = "evaluate the calibration of the forecasts in a file, before and after if it holds both"
    check = part(parts, "check", help=told, description=f"{told.capitalize()}.", examples=EXAMPLES)
    check.add_argument("file", metavar="FILE", help=FILE)
    check.add_argument("--report", metavar="HTML", help="write a report with pictures")
    check.add_argument("--json", action="store_true", help="print the verdict and its numbers as JSON")
    check.add_argument("--fail", action="store_true", help="exit with 1 if a model or a series is miscalibrated")
    check.add_argument("-q", "--quiet", action="store_true", help="print the first sentence of each verdict alone")
    add_columns(check)
    check.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, evaluate, report."""
    from orcast.cli import tables

    tables.check_places({"FILE": options.file, "--target": options.target}, {"--report": options.report})
    table, frame = tables.open_frame(options)
    from orcast.evaluate import summary
    from orcast.evaluate.frames import read_rows
    from orcast.evaluate.verdicts import faults, named_alarms

    with table.located():
        rows = read_rows(frame, **names_of(options), **bounds_and_times(options))
        found = rows.evaluations()
    if not options.quiet:
        print("\n".join(describe(table, rows.layout, len(rows.names))), file=sys.stderr)
    if options.json:
        numbers = {"file": table.name, "models": [summary(each) for each in found]}
        print(json.dumps(numbers, indent=2, ensure_ascii=False))
    else:
        print("\n".join(verdicts(found, options.quiet)))
    if options.report:
        from orcast.evaluate.report import write

        write(options.report, found, source=table.name)
        if not options.quiet:
            print(f"written: {options.report}", file=sys.stderr)
    failed = options.fail and any(faults(each, each.sides[-1]) or named_alarms(each) for each in found)
    return 1 if failed or any(evaluation.outside for evaluation in found) else 0


def verdicts(found: Sequence[Evaluation], short: bool = False) -> list[str]:
    """Sentences on each model, or the first of them."""
    from orcast.evaluate import verdict

    lines = []
    for evaluation in found:
        own = verdict(evaluation)[: 1 if short else None]
        lines += own if len(found) == 1 else [f"{evaluation.model or 'forecast'}:", *(f"  {line}" for line in own)]
    return lines
