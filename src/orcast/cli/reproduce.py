"""`orcast reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orcast.cli.common import Parts, file, limited, part, say
from orcast.parallel import Progress

EXPERIMENTS = ("recalibration", "adversarial", "windfarm")
NEEDED = ("matplotlib", "rich", "river", "sklearn")

EXAMPLES = """  orcast reproduce recalibration --data FOLDER     the paper's table, beside the strongest alternatives
  orcast reproduce all --quick                     everything, small, in half a minute
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    reproduce = part(
        parts,
        "reproduce",
        help="run the paper's experiments: tables, CSV files and figures",
        description="Run an experiment of the paper (section 6), or all three.",
        examples=EXAMPLES,
    )
    reproduce.add_argument("experiment", choices=(*EXPERIMENTS, "all"))
    where = "where the series are; else ORCAST_DATA, else a stand-in"
    file(reproduce, "--data", folder=True, metavar="FOLDER", help=where)
    file(reproduce, "--out", folder=True, metavar="FOLDER", default="results", help="where files go (default: results)")
    file(reproduce, "--page", metavar="FILE", help="also as a page in Markdown, below its mark '<!-- produced -->'")
    reproduce.add_argument("--quick", action="store_true", help="fewer settings, rounds and runs")
    reproduce.add_argument("--seed", type=limited(int), default=0, help="of everything random (default: 0)")
    reproduce.add_argument(
        "--workers", type=limited(int), default=os.cpu_count() or 1, help="processes (default: as many as cores)"
    )
    reproduce.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run experiments: a progress bar, tables, files."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f"expected the extra orcast[research] to be installed, got no {', '.join(missing)}")
    if options.workers < 1:
        raise ValueError(f"expected at least 1 worker, got {options.workers}")
    from rich.console import Console

    from orcast.paper.experiments.output import claims_table

    console = Console()
    chosen = EXPERIMENTS if options.experiment == "all" else (options.experiment,)
    begin = time.perf_counter()
    parts, claims = [], []
    for name in chosen:
        result = _run(console, name, options)
        console.print(f"[bold]{result.title}[/bold]")
        for note in result.notes:
            console.print(note, highlight=False)
        for table in result.tables:
            print_table(console, table)
        paths = result.write(Path(options.out))
        console.print(f"written: {', '.join(str(path) for path in paths)}", soft_wrap=True, highlight=False)
        console.print()
        parts.append(result.markdown(pictures=relative_folder(options.page, options.out)))
        claims += result.claims
    table = claims_table(claims)
    print_table(console, table)
    console.print(f"written: {table.write(Path(options.out))}", soft_wrap=True, highlight=False)
    if options.page:
        first = [f"## What reproduces\n\n{table.section()}\n"]
        if chosen == EXPERIMENTS:
            from orcast.paper.experiments.summary import summary

            first.append(f"{summary(options.out)}\n")
        write_page(Path(options.page), [*first, *parts], time.perf_counter() - begin)
        console.print(f"page: {options.page}", highlight=False)
    console.print(f"{time.perf_counter() - begin:.0f} s", highlight=False)
    return 0


def print_table(console: Any, table: Any) -> None:
    """Print a table with all its digits: no word is cut, even in a window that is too narrow for it."""
    from rich.console import Console
    from rich.measure import Measurement

    shown = table.rich()
    least = Measurement.get(console, console.options.update(max_width=1000), shown).minimum
    wide = console if least <= console.width else Console(width=least, file=console.file)
    wide.print(shown, crop=False)


MARK = "<!-- produced -->"


def write_page(path: Path, parts: Sequence[str], seconds: float, command: str = "orcast reproduce") -> None:
    """Put results into a page, below its mark; what was written above it stays."""
    import platform

    from orcast import __version__

    above = path.read_text(encoding="utf-8").split(MARK)[0] if path.exists() else "# Experiments\n\n"
    versions = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "numba", "river", "scikit-learn"))
    made = (
        f"Produced by `{command}` in {seconds:.0f} s on {os.cpu_count()} cores ({platform.machine()}, "
        f"{platform.system()}), Python {platform.python_version()}, orcast {__version__}, {versions}."
    )
    path.write_text("\n".join([f"{above}{MARK}\n\n{made}\n", *parts]), encoding="utf-8")


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def relative_folder(page: str | None, folder: str) -> str:
    """The path of a folder relative to that of a page."""
    if page is None:
        return ""
    away = os.path.relpath(Path(folder).absolute(), Path(page).absolute().parent)
    return f"{Path(away).as_posix()}/"


class _Tenths:
    """Progress as lines, one for every tenth."""

    def __init__(self, name: str) -> None:
        self.name, self.said = name, -1

    def __call__(self, what: str, share: float) -> None:
        tenths = int(10.0 * share + 1e-9)
        if tenths > self.said:
            self.said = tenths
            say(f"{self.name}: {10 * tenths}% done ({what})")


@contextmanager
def progress_bar(console: Any, name: str) -> Iterator[Progress]:
    """A bar that is gone when all is done, or a line on stderr for every tenth of it where there is no terminal."""
    if not console.is_terminal:
        yield _Tenths(name)
        return
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn("{task.percentage:3.0f}%"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _run(console: Any, name: str, options: argparse.Namespace) -> Any:
    module = import_module(f"orcast.paper.experiments.{name}")
    with progress_bar(console, name) as progress:
        return module.run(
            folder=options.data, quick=options.quick, seed=options.seed, workers=options.workers, progress=progress
        )
