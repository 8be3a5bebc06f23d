"""Where recalibration may do harm: short histories, late outcomes, panels; default settings alone.

``python -m benchmarks.harm PART ... [--quick]`` plays some parts only.  Real streams are read from the folder that
ORCAST_YARDSTICK names, or else from ``yardstick`` beside the data folder; what is not there is skipped.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orcast as oc
from benchmarks import harm_games, harm_panels, harm_streams, panel, yardstick
from benchmarks.results import Line, Remark, as_text
from orcast.paper.experiments import data

TITLE = "Do no harm: short histories, late outcomes, panels"
FORECASTS_A_SECOND = 25_000

Lines = Iterator[Line | Remark]


def folder() -> Path | None:
    """The folder of streams and short panels; None if there is none."""
    named = os.environ.get(yardstick.VARIABLE)
    beside = os.environ.get(data.VARIABLE)
    place = Path(named) if named else Path(beside).resolve().parent / "yardstick" if beside else None
    return place if place is not None and place.is_dir() else None


def speed(quick: bool) -> Lines:
    """Many series in one frame, with what they share and, if that can be turned off, without."""
    series, steps = (500, 100) if quick else (10_000, 200)
    cores = os.cpu_count() or 1
    case = f"{series:,} series x {steps} steps"
    ways: dict[str, dict[str, bool]] = {"": {}}
    if "pool" in inspect.signature(oc.recalibrate).parameters:
        ways[", pool=False"] = {"pool": False}
    for name, options in ways.items():
        found = panel.apart(series, steps, cores, "pandas", **options)
        target = FORECASTS_A_SECOND if not quick and not options else None
        rate = series * steps / found["seconds"]
        note = f"{cores} cores; memory of all processes {found['bytes'] / 1e6:,.0f} MB"
        yield Line(case + name, "forecasts a second", rate, target, ">=", form=",.0f", note=note)


PARTS: dict[str, Callable[[bool], Lines]] = {
    "short": lambda quick: harm_panels.short(folder(), quick),
    "ensemble": harm_panels.ensemble,
    "yardstick": lambda quick: harm_streams.one_step(folder(), quick),
    "coverage": lambda quick: harm_streams.coverage(folder(), quick),
    "late": lambda quick: harm_streams.late(folder(), quick),
    "wind": lambda quick: harm_streams.wind(folder(), quick),
    "season": harm_games.season,
    "gaps": harm_games.gaps,
    "perfect": harm_games.perfect,
    "narrow": harm_games.narrow,
    "jumps": harm_games.jumps,
    "two": harm_games.two,
    "speed": speed,
}


def measure(quick: bool = False) -> Lines:
    for part in PARTS.values():
        yield from part(quick)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harm", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and repetitions")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"expected parts among {', '.join(PARTS)}, got {', '.join(unknown)}")
    for name in options.parts or PARTS:
        begin = time.perf_counter()
        for line in PARTS[name](options.quick):
            print(as_text(line), flush=True)
        print(f"  ({name}: {time.perf_counter() - begin:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
