"""The demonstration: `python -m orcast.demo` recalibrates a real series, prints a table and draws a picture.

With a data folder (`--data` or the environment variable ORCAST_DATA) the series is the hourly wind power of Texas in
2022, else the hourly humidity at an airport of New York in 2013, which comes with the package.  Two ordinary experts
forecast it, and each is recalibrated round by round: predict, then update, as in production.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orcast import evidence as facts
from orcast.evidence import Evidence
from orcast.metrics import LEVELS, worst_rolling_qce
from orcast.plots import overview

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from rich.table import Table

    from orcast.paper.experiments.data import RealSeries
    from orcast.paper.experiments.experts import ForecastStream

__all__ = ["main", "play"]

# Forecasts before and after, and the seconds it took, by expert.
Runs = dict[str, tuple[Evidence, float]]

TITLES = {
    "wind": "Wind power in Texas (ERCOT), hourly, 2022",
    "sunspots": "Sunspots, monthly, since 1749",
    "humidity": "Relative humidity at JFK airport, hourly, 2013",
}
EXPERTS = {"naive": "seasonal naive", "rls": "least squares"}
# What each forecasts by; recalibrated ones are told every outcome.
KNOWS = {"naive": "knows the value a season ago", "rls": "knows the last 24 values"}
WINDOW = 200
# Six weeks of hours: half a minute for two experts before kernels are compiled.
ROUNDS = 1000
RESOLUTION = 160


def play(stream: ForecastStream, *, name: str, step: Callable[[], object] = lambda: None) -> tuple[Evidence, float]:
    """Recalibrate a stream round by round: the forecasts before and after at 99 levels, and the seconds it took.

    `step` is called after each round.

    >>> from orcast.paper.experiments import data, experts
    >>> stream = experts.stream(data.load("humidity"), "rls")
    >>> evidence, seconds = play(_first(stream, 50), name="humidity")
    >>> evidence.after.shape, facts.promise_check(evidence).held, facts.promise_check(evidence).kept
    ((50, 99), 1.0, 50)
    """
    from orcast import Interval, Normal, Recalibrator

    recal = Recalibrator(Interval(stream.low, stream.high))
    rounds = len(stream)
    after = np.empty((rounds, LEVELS.size))
    miscalibration, promised, holds = np.empty((3, rounds))
    seconds = 0.0
    for t in range(rounds):
        start = time.perf_counter()
        p = recal.predict(Normal(stream.mu[t], stream.sd[t]))
        seconds += time.perf_counter() - start
        after[t] = p.quantile(LEVELS)
        holds[t] = p.certificate.holds
        start = time.perf_counter()
        recal.update(stream.y[t])
        seconds += time.perf_counter() - start
        so_far = recal.guarantee
        miscalibration[t], promised[t] = so_far.miscalibration, so_far.promised
        step()
    evidence = Evidence.of(
        stream.quantile(LEVELS),
        stream.y,
        after=after,
        levels=LEVELS,
        model=name,
        low=stream.low,
        high=stream.high,
        holds=holds,
        promised=promised,
        miscalibration=miscalibration,
    )
    return evidence, seconds


def _first(stream: ForecastStream, rounds: int) -> ForecastStream:
    from orcast.paper.experiments.experts import ForecastStream

    cut = slice(None, rounds)
    return ForecastStream(stream.name, stream.mu[cut], stream.sd[cut], stream.y[cut], stream.low, stream.high)


def _play_all(console: Console, series: RealSeries, rounds: int) -> Runs:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from orcast.paper.experiments.experts import stream

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    runs: Runs = {}
    # without a terminal a bar would only litter the log: a line when done is enough
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        for expert, title in EXPERTS.items():
            forecasts = _first(stream(series, expert), rounds)
            task = progress.add_task(title, total=len(forecasts))

            def step(task: TaskID = task) -> None:
                progress.advance(task)

            name = f"{TITLES[series.name]}; expert: {title} ({KNOWS[expert]})"
            runs[expert] = play(forecasts, name=name, step=step)
            console.print(f"{title}: {len(forecasts):,} rounds recalibrated one by one")
    return runs


def _digits(value: float) -> str:
    """Four digits or all before the point, never an exponent."""
    decimals = 3 - int(np.floor(np.log10(value))) if value > 0.0 else 0
    return f"{value:,.{min(max(decimals, 0), 8)}f}"


def _row(evidence: Evidence, side: str, title: str, step: str) -> list[str]:
    loss, base = (float(facts.loss(evidence, each).mean()) for each in (side, "before"))
    space = {"low": float(evidence.low[0]), "high": float(evidence.high[0])}
    worst = worst_rolling_qce(evidence.side(side), evidence.y, window=WINDOW, **space)
    return [
        title,
        f"{facts.error(evidence, side):.4f}",
        f"{worst:.2f}" if np.isfinite(worst) else "-",
        f"{facts.coverage(evidence, 0.9, side):.1%}",
        _digits(facts.width(evidence, 0.9, side)),
        _digits(loss),
        f"{loss / base:.3f}",
        step,
    ]


def _table(series: RealSeries, runs: Runs) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    unit = series.unit if len(series.unit) <= 3 else "units"
    headings = ("QCE", f"worst\n{WINDOW}", "90% band\nholds", f"its width\n{unit}", "pinball\nloss", "relative", "time")
    for heading in headings:
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for expert, title in EXPERTS.items():
        evidence, seconds = runs[expert]
        each = 1e6 * seconds / evidence.rows
        table.add_row(*_row(evidence, "before", title, ""))
        table.add_row(*_row(evidence, "after", "  recalibrated", f"{each:.0f} us"), end_section=expert == "naive")
    return table


def _guarantee(evidence: Evidence) -> str:
    found = facts.promise_check(evidence)
    assert found is not None
    assert found.held is not None
    kept = "kept" if found.kept == found.rows else "NOT kept"
    return (
        f"miscalibration {found.final[0]:.4f} <= promised {found.final[1]:.4f}, "
        f"{kept} after every round; held {found.held:.1%}"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m orcast.demo", description="Recalibrate a real series; print a table and draw a picture."
    )
    parser.add_argument("--data", metavar="FOLDER", help="where the wind and sunspot files are (default: $ORCAST_DATA)")
    parser.add_argument("--series", choices=tuple(TITLES), help="which series (default: wind if there, else humidity)")
    parser.add_argument("--out", metavar="FILE", default="demo.png", help="the picture (default: %(default)s)")
    parser.add_argument("--picture", choices=tuple(EXPERTS), default="naive", help="which expert the picture shows")
    parser.add_argument(
        "--rounds", type=int, metavar="N", default=ROUNDS, help="stop after N rounds (default: %(default)s)"
    )
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> RealSeries:
    from orcast.paper.experiments import data

    if options.data is not None and not Path(options.data).is_dir():
        raise ValueError(f"expected a folder as --data, got {options.data!r}")
    name = options.series
    if name is None:
        # a folder that was named on the command line must do; one from the environment is only used if it does
        name = "wind" if options.data is not None or "wind" in data.available() else "humidity"
    return data.load(name, options.data)


def _check(options: argparse.Namespace) -> None:
    if options.rounds < 10:
        raise ValueError(f"expected at least 10 as --rounds, got {options.rounds}")
    out = Path(options.out)
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise ValueError(f"expected a file in an existing folder as --out, got {options.out!r}")
    if out.suffix.lower() not in (".png", ".svg", ".pdf", ".jpg"):
        raise ValueError(f"expected a file that ends in .png, .svg, .pdf or .jpg as --out, got {options.out!r}")
    for name in ("matplotlib", "rich"):
        if find_spec(name) is None:
            raise ValueError(f"expected {name}, got none installed: pip install 'orcast[demo]' brings it")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns what the process should exit with."""
    options = _options(arguments)
    try:
        _check(options)
        series = _chosen(options)
    except (ValueError, OSError) as problem:
        print(f"orcast demo: {problem}", file=sys.stderr)
        return 2
    from rich.console import Console

    from orcast.engine.kernels.packing import predict

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{TITLES[series.name]}\n[dim]source: {series.source}[/dim]")
    runs = _play_all(console, series, options.rounds)
    console.print(_table(series, runs))
    for expert, title in EXPERTS.items():
        console.print(f"{title}: {_guarantee(runs[expert][0])}")
    if predict.code is None:
        console.print(
            "[dim]time: in Python, at once; compiled kernels, some fifty times as fast, come with `orcast warm`.[/dim]"
        )
    console.print(
        f"[dim]QCE: squared gaps between frequency and level, summed over 99 levels.\n"
        f"worst {WINDOW}: the largest over any {WINDOW} rounds in a row. relative: to the expert's loss.[/dim]"
    )
    try:
        overview(runs[options.picture][0], unit=series.unit).savefig(options.out, dpi=RESOLUTION)
    except OSError as problem:
        print(f"orcast demo: the picture could not be written: {problem}", file=sys.stderr)
        return 2
    console.print(f"picture: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
