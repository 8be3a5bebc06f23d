"""Size of the state of one stream in memory and on disk, which does not depend on the number of rounds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import orcast as oc
from research.benchmarks.lines import Line, Lines

TITLE = "Memory and state"
LIMIT = 32 * 1024
EARLY, LATER = 100, 5000


def measure(quick: bool = False) -> Lines:
    """Bytes after few and many rounds, and of a pending round."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    forecasts = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu, stream.sd, strict=True)]

    recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.orcast"
        saved, arrays = [], []
        for first, last in ((0, EARLY), (EARLY, LATER)):
            for t in range(first, last):
                recal.predict(forecasts[t % len(stream)])
                recal.update(stream.y[t % len(stream)])
            recal.save(path)
            saved.append(path.stat().st_size)
            arrays.append(sum(array.nbytes for array in recal.engine.arrays().values()))
            yield Line(f"after {last:,} rounds", "saved, bytes", saved[-1], LIMIT, form=",.0f")
            yield Line(f"after {last:,} rounds", "arrays in memory, bytes", arrays[-1], LIMIT, form=",.0f")
        yield Line("growth", "saved, bytes", saved[1] - saved[0], 64, form=",.0f", note="digits of counters")
        yield Line("growth", "arrays in memory, bytes", arrays[1] - arrays[0], 0, form=",.0f")
        other = oc.Recalibrator(recal.space)
        other.predict(forecasts[0])
        record = other.rounds.pending[None].record
        yield Line("each pending round", "bytes", sum(a.nbytes for a in record.arrays().values()), form=",.0f")
