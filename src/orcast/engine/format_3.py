"""Games on ordered spaces as the first state files of format 3 have them, and what becomes of their arrays.

Their learners of location looked at one outcome, where those of today look at three.  They are told from those of today
by their lengths.  Coefficients go on, those of the outcomes before the last begin anew, and these outcomes, which are
not known, are taken as equal to the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.kernels.packing import Shape
from orcast.engine.kernels.packing import round_shapes as shapes_of_today
from orcast.engine.kernels.records import Memory, Rules, Statistic, TrackerRecord

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]

# Statistics, and outcomes that are new in them, among the features and in the tracker's record.
STATISTICS, OUTCOMES = 22, 2
# Where the features of location lie today.
FEATURES = [*range(TrackerRecord.OUTCOME_2), TrackerRecord.SEASON_1, TrackerRecord.SEASON_2]


def memory_shapes(rules: Rules) -> dict[str, Shape]:
    """The shapes of a memory that are others today."""
    learners, features = len(rules.learners), len(FEATURES)
    return {
        "statistics": (STATISTICS,),
        "location": (learners, features),
        "location_cov": (learners, features, features),
    }


def round_shapes(rules: Rules) -> dict[str, Shape]:
    """The shapes of a round, in the order of its row; its slots lie apart."""
    shapes: dict[str, Any] = shapes_of_today(rules)._asdict()
    del shapes["slots"]
    return {**shapes, "tracker_record": (shapes["tracker_record"][0] - OUTCOMES,)}


def fill_outcomes(statistics: Array) -> None:
    """The outcomes before the last."""
    statistics[Statistic.OUTCOME_2 :] = statistics[Statistic.LAST_OUTCOME]


def memory_of(rules: Rules, arrays: Arrays, blank: Memory) -> dict[str, NDArray[Any]]:
    """A memory of today from one of this format; `blank` is an empty one, of which a part is filled."""
    shapes = memory_shapes(rules)
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}")
    blank.statistics[:STATISTICS] = arrays["statistics"]
    fill_outcomes(blank.statistics)
    blank.location[:, FEATURES] = arrays["location"]
    blank.location_cov[np.ix_(range(len(rules.learners)), FEATURES, FEATURES)] = arrays["location_cov"]
    return {**arrays, **{name: getattr(blank, name) for name in shapes}}


def round_of(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """A pending round of today from one of this format: nothing was said of the outcomes that are new."""
    record = np.insert(arrays["tracker_record"], [TrackerRecord.OUTCOME_2] * OUTCOMES, 0.0)
    return {**arrays, "tracker_record": record}
