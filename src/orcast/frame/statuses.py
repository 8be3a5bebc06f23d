"""Statuses: what the column "status" says of a row, in panels and in streams of events."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Status(IntEnum):
    """Status of a row; the numbers are saved in states.

    >>> Status.NO_FORECAST.text
    'no forecast'
    """

    OK = 0  # its outcome was used
    PENDING = 1  # no outcome yet
    NO_FORECAST = 2  # it is missing, or not finite
    OUTSIDE = 3  # the outcome lies beyond the bounds and was not used
    CORRECTED = 4  # the outcome is not the one that was used
    SEEN = 5  # answered before
    LATE = 6  # before rows that were answered, so there is no answer
    LOST = 7  # more rows were pending than a game keeps
    REFUSED = 8  # an event of a stream that makes no sense
    GIVEN_UP = 9  # its outcome came long after those of later rows and was not used

    @property
    def text(self) -> str:
        """As the column has it."""
        return self.name.lower().replace("_", " ")


# By number.
STATUS_TEXTS = np.array([status.text for status in Status], dtype=object)
# Rows that somebody should look at.
NEEDS_ATTENTION = (Status.OUTSIDE, Status.CORRECTED, Status.LATE, Status.LOST)
