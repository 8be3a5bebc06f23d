"""`orcast demo`: recalibrate forecasts of a real series, print the verdict and write a report."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from orcast.cli.common import Parts, part

if TYPE_CHECKING:
    from orcast.evaluate import Evaluation

DESCRIPTION = "Recalibrate forecasts of the relative humidity at JFK airport, print the verdict and write a report."
EXAMPLES = """\
  orcast demo
  orcast demo -o humidity.html
"""
EXPERTS = {"naive": "seasonal naive (knows the value a season ago)", "rls": "least squares (knows the last 24 values)"}
ROUNDS = 1000


def add(parts: Parts) -> None:
    """Add the part to the command."""
    told = "recalibrate a real stream: verdict and report"
    demo = part(parts, "demo", help=told, description=DESCRIPTION, examples=EXAMPLES)
    demo.add_argument("-o", "--output", default="demo.html", metavar="FILE", help="report (default: %(default)s)")
    demo.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demonstration."""
    from orcast import datasets
    from orcast.cli.check import verdicts
    from orcast.cli.tables import check_places
    from orcast.evaluate import report

    check_places({}, {"--output": options.output})
    found = [evaluation(expert) for expert in EXPERTS]
    source = datasets.load("humidity").source
    print(source, *verdicts(found), sep="\n")
    report.write(options.output, found, source=source)
    print(f"report: {options.output}")
    return 0


def evaluation(expert: str) -> Evaluation:
    """Recalibrate the first forecasts of an expert, evaluated at 99 levels."""
    from orcast import Interval, Normal, Recalibrator, datasets
    from orcast.evaluate import Evaluation
    from orcast.evaluate.metrics import LEVELS

    stream = datasets.stream(datasets.load("humidity"), expert)
    forecasts = [Normal(*each) for each in zip(stream.mu[:ROUNDS], stream.sd[:ROUNDS], strict=True)]
    result = Recalibrator(Interval(stream.low, stream.high)).run(forecasts, stream.y[:ROUNDS], at=LEVELS, detailed=True)
    return Evaluation.of(
        stream.quantile(LEVELS)[:ROUNDS],
        stream.y[:ROUNDS],
        after=result.rows,
        levels=LEVELS,
        model=EXPERTS[expert],
        low=stream.low,
        high=stream.high,
        holds=result.holds,
        promised=result.promised,
        miscalibration=result.miscalibration,
        timed=True,
    )
