"""Command `python -m research bench`."""

from __future__ import annotations

import argparse
import csv
import os
import time
from importlib import import_module
from pathlib import Path

from research.benchmarks.lines import Line

SECTIONS = {
    "speed": "predict + update as ratios to one scipy call, in CPU time",
    "quality": "accuracy and coverage against the base forecast, references and the best rival; harm to good forecasts",
    "drawn": "drawn probabilities and actions: errors under attack, price, regret for any proper score",
    "frames": "many series in one frame, and a file through the command line",
    "monitor": "false alarms and delays of monitors beside other detectors; many series; speed",
    "serve": "the HTTP service: requests a second, a batch, 100,000 series, a restart",
}
YARDSTICK = "ORCAST_YARDSTICK"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    listed = "; ".join(f"{name}: {text}" for name, text in SECTIONS.items())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sections (default: all). {listed}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and repetitions")
    parser.add_argument("--yardstick", metavar="DIR", help=f"folder of streams (default: ${YARDSTICK})")
    parser.add_argument("--output", metavar="CSV", help="write the lines to this file too")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")


def run(arguments: argparse.Namespace) -> int:
    """Run sections one after the other and print their lines."""
    unknown = [name for name in arguments.names if name not in SECTIONS]
    if unknown:
        raise ValueError(f"expected names among {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    if arguments.yardstick:
        os.environ[YARDSTICK] = arguments.yardstick
    lines: list[Line] = []
    begin = time.perf_counter()
    for name in arguments.names or SECTIONS:
        module = import_module(f"research.benchmarks.{name}")
        print(module.TITLE, flush=True)
        start = time.perf_counter()
        for line in module.measure(arguments.quick):
            print(line, flush=True)
            lines += [line] if isinstance(line, Line) else []
        print(f"  ({name}: {time.perf_counter() - start:.1f} s)\n", flush=True)
    if arguments.output:
        rows = [(each.case, each.what, f"{each.value:{each.form}}", each.verdict, each.note) for each in lines]
        with Path(arguments.output).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("case", "measure", "orcast", "target", "beside"), *rows])
    verdicts = [line.verdict for line in lines]
    missed = verdicts.count("MISSED")
    print(f"{verdicts.count('ok')} targets ok, {missed} MISSED, in {time.perf_counter() - begin:.0f} s")
    return 1 if missed and arguments.strict else 0
