"""The contest's streams: what each is, how good its raw experts are, and how long it took to make.

    python -m benchmarks.contest_streams [PART OF A NAME ...]

Pinball loss is over that of the last outcome in sight with the spread of its own past errors; Brier score over that of
the share of yeses, known afterwards.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.special import ndtri

from orcast.metrics import pinball
from research.comparison.catalogue import catalogue, left_out
from research.comparison.stream import Array, Stream


def last_outcomes(stream: Stream) -> Array:
    """Quantiles of the last outcome in sight of each series, with the spread of such forecasts in the same game."""
    series = np.zeros(stream.rows, np.int64) if stream.series is None else stream.series
    game = np.empty(stream.rows, np.int64)
    for number, rows in enumerate(stream.groups()):
        game[rows] = number
    mean, spread = np.full(stream.rows, np.nan), np.full(stream.rows, np.nan)
    last: dict[int, tuple[int, float]] = {}
    squares, counts = np.zeros(game.max() + 1), np.zeros(game.max() + 1)
    for row, issued in stream.timeline():
        key = int(series[row])
        if issued:
            if key in last and counts[game[row]] > 2:
                mean[row], spread[row] = last[key][1], np.sqrt(squares[game[row]] / counts[game[row]])
            elif key in last:
                mean[row] = last[key][1]
            continue
        if np.isfinite(mean[row]):
            squares[game[row]] += (stream.y[row] - mean[row]) ** 2
            counts[game[row]] += 1
        if key not in last or stream.known[row] >= last[key][0]:
            last[key] = int(stream.known[row]), float(stream.y[row])
    return np.asarray(mean[:, None] + spread[:, None] * ndtri(stream.levels))


def quality(stream: Stream) -> list[str]:
    """Coverage of the widest band up to 90% and relative loss of each expert."""
    said = []
    if stream.binary:
        base = stream.y.mean() * (1.0 - stream.y.mean())
        return [
            f"Brier {np.square(p - stream.y).mean() / base:.2f}, mean {p.mean():.2f} of {stream.y.mean():.2f}"
            for p in stream.experts.values()
        ]
    a = int(np.argmin(np.abs(stream.levels - 0.05)))
    b = int(np.argmin(np.abs(stream.levels - 0.95)))
    reference = last_outcomes(stream)
    there = np.isfinite(reference).all(axis=1)
    for q in stream.experts.values():
        inside = np.mean((q[:, a] <= stream.y) & (stream.y <= q[:, b]))
        ours, its = (np.mean(pinball(rows[there], stream.y[there], stream.levels)) for rows in (q, reference))
        said.append(f"{stream.levels[b] - stream.levels[a]:.0%} band {inside:.1%}, pinball {ours / its:.2f}")
    return said


def main(parts: list[str]) -> None:
    """Print a line for each stream."""
    rows, start = 0, time.process_time()
    for entry in catalogue():
        if parts and not any(part in entry.name for part in parts):
            continue
        before = time.process_time()
        stream = entry.make()
        seconds = time.process_time() - before
        rows += stream.rows
        what = f"{entry.name} | {entry.kind} | {stream.rows} | {len(stream.groups())} | {stream.levels.size}"
        print(f"{what} | {'; '.join(quality(stream))} | {seconds:.2f}")
    print(f"{rows} rows, {time.process_time() - start:.1f} s of CPU with the scores")
    print("\n".join(left_out()))


if __name__ == "__main__":
    main(sys.argv[1:])
