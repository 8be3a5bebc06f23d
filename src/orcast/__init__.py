"""Keep probabilistic forecasts calibrated on any sequence of outcomes.

Modules are imported when one of their names is first used, so that `import orcast` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "Interval": "spaces",
    "Line": "spaces",
    "HalfLine": "spaces",
    "Binary": "spaces",
    "Labels": "spaces",
    "Circle": "spaces",
    "Box": "spaces",
    "Points": "spaces",
    "Forecast": "forecasts",
    "BinaryForecast": "forecasts",
    "LabelForecast": "forecasts",
    "CircleForecast": "forecasts",
    "BoxForecast": "forecasts",
    "PointsForecast": "forecasts",
    "Normal": "adapters",
    "Ensemble": "adapters",
    "Quantiles": "adapters",
    "by": "contexts",
    "by_expert": "contexts",
    "by_last_error": "contexts",
    "CRPS": "scores",
    "MSE": "scores",
    "Brier": "scores",
    "QuantileScore": "scores",
    "LogScore": "scores",
    "QuantileCalibration": "payoffs",
    "IntervalCalibration": "payoffs",
    "MomentMatching": "payoffs",
    "MarginalCalibration": "payoffs",
    "ThresholdCalibration": "payoffs",
    "BinaryCalibration": "payoffs",
    "Calibeating": "payoffs",
    "LabelCalibration": "payoffs",
    "TopLabelCalibration": "payoffs",
    "DistributionCalibration": "payoffs",
    "LevelCalibration": "payoffs",
    "MomentCalibration": "payoffs",
    "SimplexCalibration": "payoffs",
    "DecisionCalibration": "payoffs",
    "SwapRegret": "payoffs",
    "NoRegret": "payoffs",
    "Recipe": "payoffs",
    "Custom": "payoffs",
    "Certificate": "ledger",
    "Guarantee": "ledger",
    "Equilibrium": "engine",
    "Committee": "engine",
    "BinaryRoot": "paper",
    "TwoCells": "paper",
    "MomentHull": "paper",
    "SimplexGrid": "paper",
    "DecisionGame": "paper",
    "Orca": "paper",
    "Softmax": "paper",
    "GaussianMixture": "paper",
    "MonteCarlo": "paper",
    "Adam": "paper",
    "Forecaster": "game",
    "Played": "game",
    "Recalibrator": "recalibrator",
    "PartitionedRecalibrator": "paper",
    "recalibrate": "panel",
    "PanelState": "panel",
    "Evidence": "evidence",
    "Differentiable": "paper",
    "JaxFamily": "paper",
    "ConformalLevel": "paper",
    "GibbsCandesLevel": "paper",
    "Decision": "decisions",
    "ValueBound": "decisions",
    "ValueCheck": "decisions",
    "best_action": "decisions",
    "commitment": "decisions",
    "value_bound": "decisions",
    "check_payoff": "testing",
    "QCE": "metrics",
    "RollingQCE": "metrics",
    "MeanCRPS": "metrics",
    "MeanPinball": "metrics",
    "Coverage": "metrics",
    "Width": "metrics",
    "SMAPE": "metrics",
    "ECE": "metrics",
    "MeanBrier": "metrics",
}

_MODULES = ("baselines", "evidence", "metrics", "plots", "report", "testing")

if TYPE_CHECKING:
    from orcast.adapters import Ensemble, Normal, Quantiles
    from orcast.contexts import by, by_expert, by_last_error
    from orcast.decisions import Decision, ValueBound, ValueCheck, best_action, commitment, value_bound
    from orcast.engine import Committee, Equilibrium
    from orcast.evidence import Evidence
    from orcast.forecasts import BinaryForecast, BoxForecast, CircleForecast, Forecast, LabelForecast, PointsForecast
    from orcast.game import Forecaster, Played
    from orcast.ledger import Certificate, Guarantee
    from orcast.metrics import ECE, QCE, SMAPE, Coverage, MeanBrier, MeanCRPS, MeanPinball, RollingQCE, Width
    from orcast.panel import PanelState, recalibrate
    from orcast.paper.autodiff import Differentiable, JaxFamily
    from orcast.paper.conformal import ConformalLevel, GibbsCandesLevel
    from orcast.paper.exact import BinaryRoot, DecisionGame, MomentHull, SimplexGrid, TwoCells
    from orcast.paper.families import GaussianMixture, Softmax
    from orcast.paper.orca import Adam, MonteCarlo, Orca
    from orcast.paper.partition import PartitionedRecalibrator
    from orcast.payoffs import (
        BinaryCalibration,
        Calibeating,
        Custom,
        DecisionCalibration,
        DistributionCalibration,
        IntervalCalibration,
        LabelCalibration,
        LevelCalibration,
        MarginalCalibration,
        MomentCalibration,
        MomentMatching,
        NoRegret,
        QuantileCalibration,
        Recipe,
        SimplexCalibration,
        SwapRegret,
        ThresholdCalibration,
        TopLabelCalibration,
    )
    from orcast.recalibrator import Recalibrator
    from orcast.scores import CRPS, MSE, Brier, LogScore, QuantileScore
    from orcast.spaces import Binary, Box, Circle, HalfLine, Interval, Labels, Line, Points
    from orcast.testing import check_payoff

__all__ = [
    "CRPS",
    "ECE",
    "MSE",
    "QCE",
    "SMAPE",
    "Adam",
    "Binary",
    "BinaryCalibration",
    "BinaryForecast",
    "BinaryRoot",
    "Box",
    "BoxForecast",
    "Brier",
    "Calibeating",
    "Certificate",
    "Circle",
    "CircleForecast",
    "Committee",
    "ConformalLevel",
    "Coverage",
    "Custom",
    "Decision",
    "DecisionCalibration",
    "DecisionGame",
    "Differentiable",
    "DistributionCalibration",
    "Ensemble",
    "Equilibrium",
    "Evidence",
    "Forecast",
    "Forecaster",
    "GaussianMixture",
    "GibbsCandesLevel",
    "Guarantee",
    "HalfLine",
    "Interval",
    "IntervalCalibration",
    "JaxFamily",
    "LabelCalibration",
    "LabelForecast",
    "Labels",
    "LevelCalibration",
    "Line",
    "LogScore",
    "MarginalCalibration",
    "MeanBrier",
    "MeanCRPS",
    "MeanPinball",
    "MomentCalibration",
    "MomentHull",
    "MomentMatching",
    "MonteCarlo",
    "NoRegret",
    "Normal",
    "Orca",
    "PanelState",
    "PartitionedRecalibrator",
    "Played",
    "Points",
    "PointsForecast",
    "QuantileCalibration",
    "QuantileScore",
    "Quantiles",
    "Recalibrator",
    "Recipe",
    "RollingQCE",
    "SimplexCalibration",
    "SimplexGrid",
    "Softmax",
    "SwapRegret",
    "ThresholdCalibration",
    "TopLabelCalibration",
    "TwoCells",
    "ValueBound",
    "ValueCheck",
    "Width",
    "best_action",
    "by",
    "by_expert",
    "by_last_error",
    "check_payoff",
    "commitment",
    "recalibrate",
    "value_bound",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # the next look-up no longer comes here
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__", "__doc__"})
