"""Simplicial algorithm: a walk over a grid on the simplex that always ends near a solution.

A point is labelled by the cell with positive mass in which the field is smallest, and so at most 0 by consistency. Near
a simplex whose corners have all labels (Sperner's lemma) the field is at most about 0 in every cell. Van der Laan and
Talman (1979), "A restart algorithm for computing fixed points without an extra dimension", Math. Programming 17.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def rounded(p: Array, grid: int) -> Whole:
    """Masses as whole numbers with the sum `grid`, by the largest remainders."""
    places = np.floor(p * grid + 1e-9).astype(np.int64)
    left = int(grid - places.sum())
    if left > 0:
        places[np.argsort(places - p * grid, kind="stable")[:left]] += 1
    elif left < 0:
        places[np.argmax(places)] += left
    return places


def walk(field: Callable[[Array], Array], start: Array, grid: int, most: int) -> tuple[Array, bool]:
    """Corners, one row each, of the last simplex after at most `most` steps, and True if it has all labels."""
    n = start.size
    # along direction j mass goes from cell j to the next one
    moves = np.roll(np.eye(n, dtype=np.int64), 1, axis=1) - np.eye(n, dtype=np.int64)
    known: dict[bytes, int] = {}

    def label(places: Whole) -> int:
        key = places.tobytes()
        if key not in known:
            v = field(places / grid)
            known[key] = int(np.where(places > 0, v, np.inf).argmin())
        return known[key]

    corners = [rounded(start, grid)]
    labels = [label(corners[0])]
    order: list[int] = []  # the directions between the corners
    steps = np.zeros(n, dtype=np.int64)  # distance of the first corner from the start, along each
    newest = 0
    for _ in range(most):
        same = [i for i, other in enumerate(labels) if other == labels[newest] and i != newest]
        if not same:
            if len(corners) == n:
                return np.array(corners) / grid, True
            j = labels[newest]
            order.append(j)
            corners.append(corners[-1] + moves[j])
            newest = len(corners) - 1
            labels.append(label(corners[newest]))
            continue
        out = same[0]
        while out == len(corners) - 1 and steps[order[-1]] == 0:
            # the rest is in a face of lower dimension: remove its corner with the label of the removed one
            lost = order.pop()
            corners.pop()
            labels.pop()
            out = labels.index(lost)
        if out == 0:
            first = order.pop(0)
            steps[first] += 1
            order.append(first)
            corners.pop(0)
            labels.pop(0)
            corners.append(corners[-1] + moves[first])
            newest = len(corners) - 1
        elif out == len(corners) - 1:
            last = order.pop()
            steps[last] -= 1
            order.insert(0, last)
            corners.pop()
            labels.pop()
            corners.insert(0, corners[0] - moves[last])
            newest = 0
        else:
            order[out - 1], order[out] = order[out], order[out - 1]
            corners[out] = corners[out - 1] + moves[order[out - 1]]
            labels.pop(out)
            newest = out
        labels.insert(newest, label(corners[newest]))
    return np.array(corners) / grid, False
