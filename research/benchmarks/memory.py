"""Size of the state of one stream in memory and on disk, which does not depend on the number of rounds."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np

import orcast as oc
from research.benchmarks.lines import Line, Lines

TITLE = "Memory and state"
LIMIT = 32 * 1024
EARLY, LATER, CONTINUED = 100, 5000, 50


def measure(quick: bool = False) -> Lines:
    """Bytes after few and many rounds, of a pickle and of a pending round; and a reloaded state that continues."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    forecasts = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu, stream.sd, strict=True)]

    def run(recal: oc.Recalibrator, first: int, last: int) -> np.ndarray:
        rows = []
        for t in range(first, last):
            at = t % len(stream)
            rows.append(recal.predict(forecasts[at]).mass.copy())
            recal.update(stream.y[at])
        return np.concatenate(rows)

    recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        saved, arrays = [], []
        for first, last in ((0, EARLY), (EARLY, LATER)):
            run(recal, first, last)
            recal.save(path)
            saved.append(path.stat().st_size)
            arrays.append(sum(array.nbytes for array in recal.engine.arrays().values()))
            yield Line(f"after {last:,} rounds", "saved, bytes", saved[-1], LIMIT, form=",.0f")
            yield Line(f"after {last:,} rounds", "arrays in memory, bytes", arrays[-1], LIMIT, form=",.0f")
        yield Line("growth", "saved, bytes", saved[1] - saved[0], 64, form=",.0f", note="digits of counters")
        yield Line("growth", "arrays in memory, bytes", arrays[1] - arrays[0], 0, form=",.0f")
        yield Line("pickled, with its configuration", "bytes", len(pickle.dumps(recal)), form=",.0f")
        other = oc.Recalibrator(recal.space)
        other.predict(forecasts[0])
        record = other.rounds.pending[None].record
        yield Line("each pending round", "bytes", sum(a.nbytes for a in record.arrays().values()), form=",.0f")
        again = oc.Recalibrator.load(path)
        same = np.array_equal(run(recal, LATER, LATER + CONTINUED), run(again, LATER, LATER + CONTINUED))
    yield Line("saved and reloaded", f"{CONTINUED} rounds equal bit for bit", float(same), 1.0, ">=", ".0f")
