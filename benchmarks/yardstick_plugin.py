"""The default recalibrators as plug-ins of the yardstick: ``python harness.py --plugin yardstick_plugin.py``."""

from __future__ import annotations

import numpy as np

import orcast as oc

LEVELS = np.arange(1, 100) / 100.0


class Plugin:
    """``cache`` is the number of the round of the last predict; put back before update, it says which one to settle."""

    def __init__(self) -> None:
        self.recal: oc.Recalibrator | None = None
        self.cache = -1
        self.rounds = 0

    def predict(self, q: np.ndarray, low: float, high: float) -> np.ndarray:
        if self.recal is None:
            self.recal = oc.Recalibrator(oc.Interval(low, high), max_pending=1_000_000)
        self.rounds += 1
        self.cache = self.rounds
        return self.recal.predict(oc.Quantiles(LEVELS, q), id=self.cache).quantile(LEVELS)

    def update(self, y: float) -> None:
        assert self.recal is not None
        self.recal.update(y, id=self.cache)


class BinaryPlugin:
    """The same for probabilities of an event."""

    def __init__(self) -> None:
        self.recal = oc.Recalibrator(oc.Binary(), max_pending=1_000_000)
        self.cache = -1
        self.rounds = 0

    def predict(self, p: float) -> float:
        self.rounds += 1
        self.cache = self.rounds
        return float(self.recal.predict(float(p), id=self.cache))

    def update(self, y: float) -> None:
        self.recal.update(y, id=self.cache)


METHODS = {"orcast": Plugin}
BINARY = {"orcast": BinaryPlugin}
