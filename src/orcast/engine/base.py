"""Options that the engines share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Learning(NamedTuple):
    """Corrections of the base forecast before the last layer.

    committee : True if there is a committee, on ordered spaces
    pooled : True if its members learn over a pool too
    finite : options of the members on finite spaces, in the columns of `kernels.records`
    """

    committee: bool = False
    pooled: bool = False
    finite: Array = np.empty((0, 3))


NO_LEARNING = Learning()
