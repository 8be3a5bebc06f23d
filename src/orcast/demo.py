"""The demonstration `orcast demo`: recalibrate forecasts of a real series, print the verdict and write a report."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from orcast import datasets
from orcast import evaluate as facts
from orcast.evaluate import Evaluation, report
from orcast.evaluate.metrics import LEVELS

__all__ = ["main", "run"]

TITLES = {
    "humidity": "Relative humidity at JFK airport, hourly, 2013",
    "wind": "Power of the wind farm La Haute Borne, hourly, 2014",
    "sunspots": "Sunspots (Zurich), monthly, 1749 to 1983",
}
EXPERTS = {"naive": "seasonal naive (knows the value a season ago)", "rls": "least squares (knows the last 24 values)"}
ROUNDS = 1000


def run(stream: datasets.ForecastStream, *, rounds: int, name: str) -> tuple[Evaluation, float]:
    """Recalibrate the first rounds of a stream; returns the evaluation at 99 levels, and the seconds it took.

    >>> stream = datasets.stream(datasets.load("humidity"), "rls")
    >>> evaluation, seconds = run(stream, rounds=50, name="humidity")
    >>> evaluation.after.shape, float(evaluation.holds.mean())
    ((50, 99), 1.0)
    """
    from orcast import Interval, Normal, Recalibrator

    rounds = min(rounds, len(stream))
    recal = Recalibrator(Interval(stream.low, stream.high))
    forecasts = [Normal(*each) for each in zip(stream.mu[:rounds], stream.sd[:rounds], strict=True)]
    start = time.perf_counter()
    result = recal.run_detailed(forecasts, stream.y[:rounds], at=LEVELS)
    seconds = time.perf_counter() - start
    evaluation = Evaluation.of(
        stream.quantile(LEVELS)[:rounds],
        stream.y[:rounds],
        after=result.rows,
        levels=LEVELS,
        model=name,
        low=stream.low,
        high=stream.high,
        holds=result.holds,
        promised=result.promised,
        miscalibration=result.miscalibration,
        timed=True,
    )
    return evaluation, seconds


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="orcast demo", description="Recalibrate forecasts of a real series; print the verdict and write a report."
    )
    parser.add_argument("--series", choices=datasets.NAMES, default="humidity", help="default: %(default)s")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("demo.html"), metavar="FILE", help="default: %(default)s"
    )
    parser.add_argument("--rounds", type=int, metavar="N", default=ROUNDS, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.rounds < 10:
        parser.error(f"expected at least 10 as --rounds, got {options.rounds}")
    if options.output.is_dir() or not options.output.absolute().parent.is_dir():
        parser.error(f"expected a file in an existing folder as --output, got {str(options.output)!r}")
    if options.output.suffix.lower() != ".html":
        parser.error(f"expected a file that ends in .html as --output, got {str(options.output)!r}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit code."""
    options = _options(arguments)
    series = datasets.load(options.series)
    print(f"{TITLES[series.name]} ({series.unit})\nsource: {series.source}\n", flush=True)
    runs = []
    for expert, title in EXPERTS.items():
        evaluation, seconds = run(datasets.stream(series, expert), rounds=options.rounds, name=title)
        print(f"{title}: {evaluation.rows:,} rounds, {1e6 * seconds / evaluation.rows:.0f} us each", flush=True)
        print(*(f"  {line}" for line in facts.verdict(evaluation)), sep="\n")
        runs.append(evaluation)
    report.write(options.output, runs, source=series.source)
    print(f"report: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
