"""The tracked forecast: the forecast of a default recalibrator before its last, calibrating layer.

Much of orcast's gain is memory of recent errors, which rivals do not have.  On the tracked forecast they have it, and
what remains between them and orcast is the recalibration itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orcast.forecaster import Forecaster
from research.comparison.methods import TRACKED, Method, recalibrator
from research.comparison.runner import Group, Model, Run, run_stream
from research.comparison.stream import Stream


class Learnt:
    """Issues the tracked forecast of a recalibrator, or a rival's recalibration of it."""

    def __init__(self, recalibrator: Forecaster, rival: Any = None) -> None:
        self.recalibrator, self.rival = recalibrator, rival

    def predict(self, forecast: Any = None, *, experts: Any = None, id: Hashable = None) -> Any:
        """Return the tracked forecast, recalibrated by the rival if there is one."""
        learnt = self.recalibrator.corrected(forecast, experts=experts)
        self.recalibrator.predict(forecast, experts=experts, id=id)
        return learnt if self.rival is None else self.rival.predict(learnt, id=id)

    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Update both."""
        self.recalibrator.update(y, id=id)
        if self.rival is not None:
            self.rival.update(y, id=id)


class Tracked(NamedTuple):
    """Run of the tracked forecast, and the stream on which it is the base forecast."""

    run: Run
    stream: Stream


def _starter(rival: Method | None = None) -> Callable[[Stream, Group], Model | None]:
    def start(stream: Stream, group: Group) -> Model | None:
        model = None if rival is None else rival.start(stream, group)
        if rival is not None and model is None:
            return None
        learnt = Learnt(recalibrator(stream, group), None if model is None else model.method)
        return Model(learnt, several=len(stream.experts) > 1)

    return start


def tracked(stream: Stream) -> Tracked:
    """Replace the base forecast of a stream by the tracked forecast at the time of issue of each row."""
    run = run_stream(stream, _starter())
    assert run is not None
    low, high = (0.0, 1.0) if stream.binary else (stream.low, stream.high)
    return Tracked(run, replace(stream, experts={TRACKED: np.clip(run.issued, low, high)}, members=None))


def run_on_tracked(method: Method, stream: Stream, found: Tracked) -> Run | None:
    """Run a rival on the tracked forecast.

    The outcomes of an adversary depend on the method, so the tracked forecast is then made along with it.
    """
    if stream.adversary is None:
        return method.run(found.stream)
    return run_stream(stream, _starter(method)) if method.supports(found.stream) else None
