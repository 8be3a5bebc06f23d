"""Memory: what one stream must keep, in a file and in memory, whatever the number of rounds."""

from __future__ import annotations

import math
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import orcast as oc
from benchmarks.results import Line, Remark

TITLE = "Memory and state"
LIMIT = 32 * 1024
EARLY, LATER, CONTINUED = 100, 5000, 50
# Numbers in the file's header have more digits later.
DIGITS = 64


def pickled(recal: oc.Recalibrator) -> float:
    """Bytes; nan if it cannot be pickled."""
    try:
        return float(len(pickle.dumps(recal)))
    except (AttributeError, TypeError, pickle.PicklingError):
        return math.nan


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    forecasts = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu, stream.sd, strict=True)]

    def play(recal: oc.Recalibrator, first: int, last: int) -> np.ndarray:
        rows = []
        for t in range(first, last):
            at = t % len(stream)
            rows.append(recal.predict(forecasts[at]).mass.copy())
            recal.update(stream.y[at])
        return np.concatenate(rows)

    recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        for first, last in ((0, EARLY), (EARLY, LATER)):
            play(recal, first, last)
            recal.save(path)
            arrays = sum(array.nbytes for array in recal.engine.arrays().values())
            sizes[last] = (path.stat().st_size, arrays, pickled(recal))
            for what, size in zip(("saved", "arrays in memory"), sizes[last], strict=False):
                yield Line(f"after {last:,} rounds", f"{what}, bytes", size, LIMIT, form=",.0f")
        growth = [later - early for early, later in zip(sizes[EARLY], sizes[LATER], strict=True)]
        yield Line("growth", "saved, bytes", growth[0], DIGITS, form=",.0f", note="digits of counters")
        yield Line("growth", "arrays in memory, bytes", growth[1], 0, "=", form=",.0f")
        yield Line(
            "pickled, with its configuration", "bytes", sizes[LATER][2], form=",.0f", note=f"growth {growth[2]:.0f}"
        )
        other = oc.Recalibrator(recal.space)
        other.predict(forecasts[0])
        record = other.rounds.pending[None].record
        yield Line("each waiting round", "bytes", sum(a.nbytes for a in record.arrays().values()), form=",.0f")
        again = oc.Recalibrator.load(path)
        same = np.array_equal(play(recal, LATER, LATER + CONTINUED), play(again, LATER, LATER + CONTINUED))
    yield Line("saved and reloaded", f"{CONTINUED} rounds equal bit for bit", float(same), 1.0, "=", form=".0f")
