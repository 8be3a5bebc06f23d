"""The value of a matrix game, by the simplex method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Numbers of a tableau that are rounding errors, and pivots for each row and column.
NOTHING, PIVOTS = 1e-10, 6


def lowest_maximum(matrix: Array) -> tuple[Array, float]:
    """Weights x, not negative and with the sum 1, that make the largest of matrix @ x least, and that number.

    With all numbers between 1 and 2 it is the linear program: maximise sum u with matrix @ u <= 1, for u = x / value.
    It is feasible at 0, so it needs no first phase.
    """
    rows, columns = matrix.shape
    low = float(matrix.min())
    span = max(float(matrix.max()) - low, 1e-300)
    tableau = np.ones((rows + 1, columns + 1))
    tableau[:-1, :-1] += (matrix - low) / span
    tableau[-1, :-1] = -1.0
    tableau[-1, -1] = 0.0
    outside, inside = np.arange(columns), np.arange(columns, columns + rows)
    for _ in range(PIVOTS * (rows + columns)):
        c = int(tableau[-1, :-1].argmin())
        if tableau[-1, c] >= -NOTHING:
            break
        column = tableau[:, c].copy()
        can = np.flatnonzero(column[:-1] > NOTHING)
        if not can.size:
            break
        r = int(can[(tableau[can, -1] / column[can]).argmin()])
        row = tableau[r] / column[r]
        tableau -= column[:, None] * row
        tableau[r] = row
        tableau[:, c] = -column / column[r]
        tableau[r, c] = 1.0 / column[r]
        outside[c], inside[r] = inside[r], outside[c]
    x = np.zeros(columns)
    used = inside < columns
    x[inside[used]] = np.maximum(tableau[:-1, -1][used], 0.0)
    total = float(x.sum())
    return x / total, (1.0 / total - 1.0) * span + low
