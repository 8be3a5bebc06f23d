"""What practitioners use today to recalibrate forecasts as they come, to compare with or to use instead.

Every class has `predict(forecast)` and `update(y)` of a `Recalibrator`, with `id=` for outcomes that come late; those
that weigh several experts have `predict(experts=...)` too.  None of them comes with a certificate.
"""

from orcast.baselines.adaptive import StronglyAdaptiveTracking as StronglyAdaptiveTracking
from orcast.baselines.conformal import ConformalLevels as ConformalLevels
from orcast.baselines.conformal import ConformalMixture as ConformalMixture
from orcast.baselines.cqr import ConformalQuantiles as ConformalQuantiles
from orcast.baselines.descent import DecayingTracking as DecayingTracking
from orcast.baselines.descent import GradientEquilibrium as GradientEquilibrium
from orcast.baselines.descent import OptimisticTracking as OptimisticTracking
from orcast.baselines.descent import ScaleFreeTracking as ScaleFreeTracking
from orcast.baselines.ensembles import IsotonicDistributions as IsotonicDistributions
from orcast.baselines.ensembles import RollingEMOS as RollingEMOS
from orcast.baselines.event_isotonic import IsotonicProbabilities as IsotonicProbabilities
from orcast.baselines.event_isotonic import VennAbers as VennAbers
from orcast.baselines.events import BetaCalibration as BetaCalibration
from orcast.baselines.events import EventGradientEquilibrium as EventGradientEquilibrium
from orcast.baselines.events import HistogramBinning as HistogramBinning
from orcast.baselines.events import OnlinePlatt as OnlinePlatt
from orcast.baselines.events import PlattCalibeating as PlattCalibeating
from orcast.baselines.experts import BernsteinAggregation as BernsteinAggregation
from orcast.baselines.experts import EqualWeights as EqualWeights
from orcast.baselines.isotonic import Isotonic as Isotonic
from orcast.baselines.plain import AsGiven as AsGiven
from orcast.baselines.plain import EventAsGiven as EventAsGiven
from orcast.baselines.plain import LastOutcome as LastOutcome
from orcast.baselines.plain import OutcomeFrequency as OutcomeFrequency
from orcast.baselines.portfolio import UniversalPortfolioTracking as UniversalPortfolioTracking
from orcast.baselines.tracking import ConformalPID as ConformalPID
from orcast.baselines.tracking import MultiLevelTracking as MultiLevelTracking
