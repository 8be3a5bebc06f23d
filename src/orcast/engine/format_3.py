"""Games on ordered spaces as the first state files of format 3 have them, and what becomes of their arrays.

Their learners of location looked at three errors and one outcome, where most of today's look at one error and three
outcomes.  They are told from those of today by their lengths.  A coefficient goes on where it is looked at still, one
that is new begins anew, and the outcomes before the last, which are not known, are taken as equal to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.packing import Shape
from orcast.engine.kernels.packing import round_shapes as shapes_of_today
from orcast.engine.kernels.records import LearnerColumn, Memory, Rules, Statistic, TrackerRecord

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]

# Statistics, and outcomes that are new in them and in the tracker's record.
STATISTICS, OUTCOMES = 22, 2
# The features of location that each learner had a column for.
FEATURES = [*range(TrackerRecord.OUTCOME_2), TrackerRecord.SEASON_1, TrackerRecord.SEASON_2]


def round_shapes(rules: Rules) -> dict[str, Shape]:
    """The shapes of a round, in the order of its row; its slots lie apart."""
    shapes: dict[str, Any] = shapes_of_today(rules)._asdict()
    del shapes["slots"]
    return {**shapes, "tracker_record": (shapes["tracker_record"][0] - OUTCOMES,)}


def fill_location(rules: Rules, blank: Memory, location: Array, covariance: Array) -> None:
    """Fill the coefficients of location from those of as many learners; a learner may have had no seasons."""
    for c, learner in enumerate(rules.learners):
        places = [_place(j, int(learner[LearnerColumn.ERRORS])) for j in range(int(learner[LearnerColumn.FEATURES]))]
        pairs = [(mine, FEATURES.index(place)) for mine, place in enumerate(places) if place in FEATURES]
        mine, theirs = np.array([pair for pair in pairs if pair[1] < location.shape[1]]).T
        blank.location[c, mine] = location[c, theirs]
        blank.location_cov[c][np.ix_(mine, mine)] = covariance[c][np.ix_(theirs, theirs)]


def _place(j: int, errors: int) -> int:
    """Where in the tracker's record the feature of a column lies, for a learner of so many errors."""
    return j if j <= errors else TrackerRecord.LAST_OUTCOME + j - errors - 1


def fill_outcomes(statistics: Array) -> None:
    """The outcomes before the last."""
    statistics[Statistic.OUTCOME_2 :] = statistics[Statistic.LAST_OUTCOME]


def memory_of(rules: Rules, arrays: Arrays, blank: Memory) -> dict[str, NDArray[Any]]:
    """A memory of today from one of this format; `blank` is an empty one, of which a part is filled."""
    blank.statistics[:STATISTICS] = arrays["statistics"]
    fill_outcomes(blank.statistics)
    for name in ("location", "location_cov"):
        if arrays[name].shape != getattr(blank, name).shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {getattr(blank, name).shape}")
    fill_location(rules, blank, arrays["location"], arrays["location_cov"])
    new = {name: getattr(blank, name) for name in ("statistics", "location", "location_cov")}
    return {**arrays, **new}


def round_of(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """A pending round of today from one of this format: nothing was said of the outcomes that are new."""
    record = np.insert(arrays["tracker_record"], [TrackerRecord.OUTCOME_2] * OUTCOMES, 0.0)
    return {**arrays, "tracker_record": record}
