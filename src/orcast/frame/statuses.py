"""Statuses of rows, in frames and in streams of events."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Status(IntEnum):
    """Status of a row; the numbers are saved in states.

    >>> Status.NO_FORECAST.text
    'no forecast'
    """

    OK = 0  # the outcome was used
    PENDING = 1  # no outcome yet
    NO_FORECAST = 2  # the forecast is missing or not finite
    OUTSIDE = 3  # the outcome lies outside the bounds and was not used
    CORRECTED = 4  # the outcome differs from the one that was used
    ALREADY_ANSWERED = 5  # an earlier call used the outcome
    LATE = 6  # the row precedes answered rows, so it has no answer
    EVICTED = 7  # more rows were pending than a stream keeps
    REFUSED = 8  # invalid row of a Spark stream
    EXPIRED = 9  # the outcome came long after those of later rows and was not used

    @property
    def text(self) -> str:
        """Text in the column of statuses."""
        return self.name.lower().replace("_", " ")


# By number.
STATUS_TEXTS = np.array([status.text for status in Status], dtype=object)
# Statuses that make the command exit with 1.
NEEDS_ATTENTION = (Status.OUTSIDE, Status.CORRECTED, Status.LATE, Status.EVICTED)
