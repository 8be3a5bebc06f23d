"""Cases and helpers shared by the tests of the rivals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research import rivals

Vector = NDArray[np.float64]
PERCENTS = np.arange(1, 100) / 100

QUANTITIES: dict[str, Callable[..., Any]] = {
    **{name: getattr(rivals, name) for name in (
        "ACI", "DtACI", "CalibratedRegression", "ConformalPID", "MultiQT", "DecayingOCP",
        "COP", "AcMCP", "NexCP", "CQR", "BOA", "AgACI", "EqualWeights", "LastOutcome", "Laplace",
        "LaplaceCorrection", "LaplacePortfolio",
    )},
    "CalibratedRegression, window": partial(rivals.CalibratedRegression, window=20),
    "ACI, fast": partial(rivals.ACI, rate=0.3),
    "quantile tracker": partial(rivals.ConformalPID, integral=0),
    "ConformalPID, stiff": partial(rivals.ConformalPID, saturation=0.1, window=5),
    "NexCP, window": partial(rivals.NexCP, window=7),
    "EMOS": partial(rivals.EMOS, window=100),
    "EMOS, each round": partial(rivals.EMOS, window=20, every=1),
    "IDR, each round": partial(rivals.IDR, window=20, every=1),
}  # fmt: skip
EVENTS: dict[str, Callable[..., Any]] = {
    **{name: getattr(rivals, name) for name in (
        "OPS", "TOPS", "HistogramBinning", "BetaCalibration", "IsotonicCalibration", "VennAbers", "OutcomeFrequency",
    )},
    "IsotonicCalibration, window": partial(rivals.IsotonicCalibration, window=20),
    "VennAbers, window": partial(rivals.VennAbers, window=20),
}  # fmt: skip


def forecast_all(method: Any, experts: Any, outcomes: Any, levels: Vector = PERCENTS, *, late: int = 0) -> Vector:
    """Issued quantiles; each outcome is known `late` rounds after its own."""
    rows = []
    for t, expert in enumerate(experts):
        rows.append(method.predict(expert, id=t).quantile(levels))
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array(rows)


def offsets(method: Any, experts: Any, outcomes: Any, *, late: int = 0) -> Vector:
    """Offset issued in each round, and the last one."""
    found = []
    for t, expert in enumerate(experts):
        found.append(method.offset)
        method.predict(expert, id=t)
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array([*found, method.offset])
