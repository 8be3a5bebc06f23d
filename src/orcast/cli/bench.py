"""`orcast bench`: the benchmarks of a clone, or else a short measurement."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter

from orcast.cli.common import Parts, file, part

EXAMPLES = """\
  orcast bench                  everything (in a clone, some minutes) or a short measurement
  orcast bench speed --quick    one section of a clone's benchmarks
"""
# Where a clone is, if this is one.
ROOT = Path(__file__).resolve().parents[3]
# Rounds of a block, and how often the blocks of both sides take turns.
BLOCK, TURNS = 50, 21


def add(parts: Parts) -> None:
    """Add the part to the command."""
    bench = part(
        parts,
        "bench",
        help="measure the speed: ratios from one run",
        description="In a clone: run its benchmarks, as `make bench` does.  Else: a short measurement of the speed,\n"
        "as ratios to a scipy call in the same run, which hardly depend on the machine.",
        examples=EXAMPLES,
    )
    bench.add_argument("sections", nargs="*", metavar="section", help="some of a clone's benchmarks; none: all")
    bench.add_argument("--quick", action="store_true", help="fewer rounds and repetitions")
    bench.add_argument("--strict", action="store_true", help="exit with 1 if a clone's target is missed")
    file(bench, "--out", metavar="FILE", help="write a clone's numbers too, as JSON or, if it ends in .md, as tables")
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the benchmarks if they are there."""
    given = [*options.sections, *(["--out", options.out] if options.out else [])]
    flags = [f"--{name}" for name in ("quick", "strict") if getattr(options, name)]
    if (ROOT / "benchmarks" / "__main__.py").exists() and (ROOT / "pyproject.toml").exists():
        sys.path.insert(0, str(ROOT))
        main: Callable[[list[str]], int] = import_module("benchmarks.__main__").main
        return main([*given, *flags])
    if given or options.strict:
        raise ValueError("expected a clone with its benchmarks for sections, --out and --strict, got none")
    measure(5 if options.quick else TURNS)
    return 0


def measure(turns: int = TURNS) -> None:
    """Print what rounds cost, in units of one scipy.stats.norm.ppf call with 99 levels."""
    import numpy as np
    from scipy.stats import norm

    from orcast import Binary, Interval, Normal, Recalibrator

    levels = np.arange(1, 100) / 100
    rng = np.random.default_rng(0)
    mean, y = rng.normal(5.0, 1.0, BLOCK), rng.normal(5.0, 1.5, BLOCK).clip(0.0, 10.0)
    number, event, batch = Recalibrator(Interval(0.0, 10.0)), Recalibrator(Binary()), Recalibrator(Interval(0.0, 10.0))
    table = mean[:, None] + norm.ppf(levels)

    def ppf() -> None:
        for centre in mean:
            norm.ppf(levels, centre, 1.0)

    def quantity() -> None:
        for centre, outcome in zip(mean, y, strict=True):
            number.predict(Normal(centre, 1.0))
            number.update(outcome)

    def binary() -> None:
        for outcome in y:
            event.predict(0.5)
            event.update(int(outcome > 5.0))

    def many() -> None:
        batch.run(table, y, levels=levels)

    print(f"  {'a round of':<36}{'in ppf calls':>14}{'microseconds':>16}", flush=True)
    works = {"predict + update, a quantity": quantity, "predict + update, yes or no": binary, "run, compiled": many}
    for name, work in works.items():
        work()
        seconds = [(_seconds(ppf), _seconds(work)) for _ in range(turns)]
        ratio = median(ours / theirs for theirs, ours in seconds)
        each = median(ours for _, ours in seconds) / BLOCK
        print(f"  {name:<36}{ratio:>14.2f}{1e6 * each:>16.0f}", flush=True)


def _seconds(work: Callable[[], None]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
