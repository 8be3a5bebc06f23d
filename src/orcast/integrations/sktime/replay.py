"""A history that is played once more, before a forecaster is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orcast.integrations.common import HorizonGame


@dataclass
class Replay:
    """Games by step, and the forecaster that taught them: how many rows it knows, and came since it was fitted."""

    games: dict[int, HorizonGame]
    forecaster: Any = None
    rows: int = 0
    age: int = 0
    centres: dict[tuple[int, int], float] = field(default_factory=dict)  # of its forecasts, by step and time
    outcomes: Mapping[int, float] = field(default_factory=dict)  # by time

    def usual_errors(self) -> dict[int, float]:
        """The mean absolute error of its forecasts at each step that has some."""
        errors: dict[int, list[float]] = {}
        for (step, time), centre in self.centres.items():
            if time in self.outcomes:
                errors.setdefault(step, []).append(abs(self.outcomes[time] - centre))
        return {step: float(np.mean(found)) for step, found in errors.items()}
