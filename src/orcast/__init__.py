"""Keep probabilistic forecasts calibrated on any sequence of outcomes.

Modules are imported when one of their names is first used, so that ``import orcast`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "Interval": "spaces",
    "Forecast": "forecasts",
    "Normal": "adapters",
    "Ensemble": "adapters",
    "Quantiles": "adapters",
    "CRPS": "scores",
    "MSE": "scores",
    "QuantileCalibration": "payoffs",
    "MomentMatching": "payoffs",
    "NoRegret": "payoffs",
    "Certificate": "ledger",
    "Guarantee": "ledger",
    "Equilibrium": "oracles",
    "Committee": "oracles",
    "Forecaster": "game",
    "Recalibrator": "recalibrator",
    "QCE": "metrics",
    "RollingQCE": "metrics",
    "MeanCRPS": "metrics",
    "Pinball": "metrics",
    "Coverage": "metrics",
    "Width": "metrics",
    "SMAPE": "metrics",
}

if TYPE_CHECKING:
    from orcast.adapters import Ensemble, Normal, Quantiles
    from orcast.forecasts import Forecast
    from orcast.game import Forecaster
    from orcast.ledger import Certificate, Guarantee
    from orcast.metrics import QCE, SMAPE, Coverage, MeanCRPS, Pinball, RollingQCE, Width
    from orcast.oracles import Committee, Equilibrium
    from orcast.payoffs import MomentMatching, NoRegret, QuantileCalibration
    from orcast.recalibrator import Recalibrator
    from orcast.scores import CRPS, MSE
    from orcast.spaces import Interval

__all__ = [
    "CRPS",
    "MSE",
    "QCE",
    "SMAPE",
    "Certificate",
    "Committee",
    "Coverage",
    "Ensemble",
    "Equilibrium",
    "Forecast",
    "Forecaster",
    "Guarantee",
    "Interval",
    "MeanCRPS",
    "MomentMatching",
    "NoRegret",
    "Normal",
    "Pinball",
    "QuantileCalibration",
    "Quantiles",
    "Recalibrator",
    "RollingQCE",
    "Width",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # the next look-up no longer comes here
        return value
    if name == "metrics":
        return import_module(f"{__name__}.metrics")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "metrics", "__version__", "__doc__"})
