"""Command `python -m research reproduce`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from research.experiments.methods import Claim, Result, claims_table
from research.jobs import WorkerPool
from research.output import progress_lines, relative_folder, require, write_page

EXPERIMENTS = ("recalibration", "adversarial", "windfarm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("experiment", choices=(*EXPERIMENTS, "all"))
    parser.add_argument("--data", metavar="FOLDER", help="folder of the series (default: $ORCAST_DATA, else stand-ins)")
    parser.add_argument("--out", metavar="FOLDER", default="results", help="folder of the files (default: results)")
    parser.add_argument("--page", metavar="FILE", help="page in Markdown, rewritten below '<!-- produced -->'")
    parser.add_argument("--quick", action="store_true", help="fewer settings, rounds and runs")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default: 0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: number of cores)")


def run(arguments: argparse.Namespace) -> int:
    """Run experiments: print tables, write files and a page."""
    require("river", "sklearn")
    out = Path(arguments.out)
    chosen = EXPERIMENTS if arguments.experiment == "all" else (arguments.experiment,)
    begin, folder = time.perf_counter(), relative_folder(arguments.page, arguments.out)
    parts: list[str] = []
    claims: list[Claim] = []
    for name in chosen:
        result = _run(name, arguments, progress_lines(name))
        parts.append(result.markdown(folder))
        print(parts[-1])
        print(f"written: {', '.join(map(str, result.write(out)))}\n")
        claims += result.claims
    table = claims_table(claims)
    print(table.section())
    print(f"written: {table.write(out)}")
    seconds = time.perf_counter() - begin
    if arguments.page:
        made = f"python -m research reproduce {arguments.experiment}"
        write_page(Path(arguments.page), [f"## Claims\n\n{table.section(folder)}\n", *parts], seconds, made)
        print(f"page: {arguments.page}")
    print(f"{seconds:.0f} s")
    return 0


def _run(name: str, arguments: argparse.Namespace, progress: Callable[[str, float], None]) -> Result:
    """Run an experiment."""
    # starting processes takes longer than a small experiment
    workers = 1 if arguments.quick and name != "recalibration" else arguments.workers
    module = import_module(f"research.experiments.{name}")
    result: Result = module.run(
        arguments.data, arguments.quick, arguments.seed, lambda jobs: WorkerPool(workers, jobs, progress)
    )
    return result
