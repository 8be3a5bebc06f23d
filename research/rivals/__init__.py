"""Methods of other authors that recalibrate forecasts online, behind `predict` and `update` of a `Recalibrator`.

Classes are named as their authors name the methods.  `predict(forecast, id=...)` and `update(y, id=...)` take late
outcomes; those for several experts take `predict(experts=...)`.  None of them has a certificate.
"""

from research.rivals.ensembles import EMOS, IDR
from research.rivals.event_isotonic import IsotonicCalibration, VennAbers
from research.rivals.events import OPS, TOPS, BetaCalibration, HistogramBinning
from research.rivals.experts import BOA, AgACI, EqualWeights
from research.rivals.levels import ACI, CalibratedRegression, DtACI
from research.rivals.offsets import (
    COP,
    CQR,
    AcMCP,
    ConformalPID,
    DecayingOCP,
    MultiQT,
    NexCP,
)
from research.rivals.plain import LastOutcome, OutcomeFrequency
from research.rivals.skaters import Laplace, LaplaceCorrection, LaplacePortfolio

__all__ = [
    "ACI", "BOA", "COP", "CQR", "EMOS", "IDR", "OPS", "TOPS", "AcMCP", "AgACI", "BetaCalibration",
    "CalibratedRegression", "ConformalPID", "DecayingOCP", "DtACI", "EqualWeights",
    "HistogramBinning", "IsotonicCalibration", "Laplace", "LaplaceCorrection",
    "LaplacePortfolio", "LastOutcome", "MultiQT", "NexCP", "OutcomeFrequency", "VennAbers",
]  # fmt: skip
