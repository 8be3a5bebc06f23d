"""Command `python -m research attack`: every payoff on every space against every adversary."""

from __future__ import annotations

import argparse
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from research.attack.games import all_games
from research.attack.play import Found, play
from research.output import Row, Table

PROCESSES = 2
COMPILED = ("Interval", "Line", "HalfLine", "Binary")
SETTINGS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
DIGITS = {"held, %": ".2f", "ratio": ".3f", "beyond certified": ".1e", "99%, ms": ".1f", "slowest, ms": ".1f"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all games (default: 10)")
    parser.add_argument("--games", default="", metavar="REGEX", help="only games with such a name")
    parser.add_argument("--output", default="docs", metavar="DIR", help="folder of attack.csv")


def run(arguments: argparse.Namespace) -> int:
    """Play all games, print the table and store it; 1 if a bound was broken without being announced."""
    games = [game for game in all_games() if re.search(arguments.games, game.name)]
    if not games:
        raise ValueError(f"expected games whose name matches {arguments.games!r}, got none")
    # time that fast games leave is for those on the dense engine, which come last
    games.sort(key=lambda game: game.space not in COMPILED)
    ahead = [max((len(games) - place) / PROCESSES, 1.0) for place in range(len(games))]
    end = time.time() + 60.0 * arguments.minutes
    os.environ |= SETTINGS  # of the new processes
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(play, games, ahead, [end] * len(games)))
    table = table_of(found)
    print(table.section(), flush=True)
    for each in found:
        if each.failure:
            print(f"{each.game.name}: {each.failure}")
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    table.write(folder)
    return int(any(each.failure or each.unsaid or each.groups for each in found))


def table_of(found: list[Found]) -> Table:
    """A row for each payoff on each space, over its adversaries."""
    rows: list[Row] = []
    for space, what in dict.fromkeys((each.game.space, each.game.what) for each in found):
        own = [each for each in found if (each.game.space, each.game.what) == (space, what) and each.ms]
        ms = np.array([value for each in own for value in each.ms] or [np.nan])
        row: Row = {"space": space, "payoff": what, "rounds": sum(len(each.ms) for each in own)}
        row["held, %"] = 100.0 * sum(each.held for each in own) / max(ms.size, 1)
        row["ratio"] = max((each.ratio for each in own), default=np.nan)
        row["beyond certified"] = max((max(each.beyond, 0.0) for each in own), default=np.nan)
        row["not announced"] = sum(each.unsaid for each in own)
        row["groups beyond"] = sum(each.groups for each in own)
        row["beyond target"] = sum(each.targets for each in own)
        row["99%, ms"], row["slowest, ms"] = float(np.quantile(ms, 0.99)), float(ms.max())
        rows.append(row)
    return Table.of("attack", f"{len(found):,} games, {sum(len(each.ms) for each in found):,} rounds", rows,
                    digits=DIGITS)  # fmt: skip
