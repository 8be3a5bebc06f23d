"""Calibration of probabilities: binary outcomes, labels, whole distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import CellGrid, CellPayoff, Part, Payoff, wrong_space
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import (
    AnswerCellPayoff,
    EventCellPayoff,
    GivenCellPayoff,
    Witness,
)
from orcast.spaces import Binary, FiniteSpace, Interval, Labels, Space
from orcast.spaces.base import whole
from orcast.validation import number

Array = NDArray[np.float64]

# Distance of an anchor that is not known yet: its weight is 0.
FAR = 1e12


def events_on(space: FiniteSpace) -> Witness:
    """Events of the probabilities: the outcome 1, or each label."""
    return Witness.constant(np.eye(space.cells)[1 if isinstance(space, Binary) else 0 :])


class _OnEvents(Payoff):
    """Hat functions of a probability times its error, for each event."""

    options = ("grid",)
    spaces: tuple[type[FiniteSpace], ...]
    wanted: str

    def __init__(self, grid: int = GRID, *, context: Context | None = None, weight: float = 1.0) -> None:
        self.grid = checked_grid(grid)
        self._settings(context, weight)

    def _make(self, cell_grid: CellGrid, witness: Witness) -> CellPayoff:
        return EventCellPayoff(witness, self.grid)

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, self.spaces):
            raise wrong_space(self, self.wanted, space)
        witness = events_on(space)
        events = witness.mean.shape[0]
        # all errors p - e_k together: |p - e_k|^2 <= 2, and 1 with a single event
        bound = 1.0 if events == 1 else 2.0
        return Part(self, self.grid * events, bound, lambda cell_grid, state: self._make(cell_grid, witness))


class BinaryCalibration(_OnEvents):
    """Among forecasts of about p, the event has frequency about p (paper, section 3).

    Parameters
    ----------
    grid
        Number of hat functions; 15 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The hat functions have flat tops and sum to one; they replace the paper's indicator 1{p ~ v}:

        payoff_v = hat_v(p) (p - y)

    Squared bound: 1.

    Examples
    --------
    >>> import orcast as oc
    >>> rain = oc.Recalibrator(oc.Binary(), oc.BinaryCalibration(grid=11))
    >>> rain.predict(0.7).certificate.holds
    True
    """

    name = "binary"
    spaces = (Binary,)
    wanted = "Binary()"


class LabelCalibration(_OnEvents):
    """Among forecasts that give a label about p, it has frequency about p, for every label (class-wise calibration).

    Parameters
    ----------
    grid
        Number of hat functions; 15 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    `BinaryCalibration` of each label (Kull et al. 2019; paper, section 3):

        payoff_{v,j} = hat_v(p_j) (p_j - 1{y = j})

    Squared bound: 2.

    Examples
    --------
    >>> import orcast as oc
    >>> LabelCalibration(grid=11).on(oc.Labels(["home", "draw", "away"])).size
    33
    """

    name = "label"
    spaces = (Labels,)
    wanted = "Labels([...])"


class Calibeating(_OnEvents):
    """Given an expert's probability of about x, forecasts are right on average (calibeating, Foster and Hart 2023).

    Parameters
    ----------
    grid
        Number of hat functions; 15 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    j is the outcome 1 of `Binary`, or every label of `Labels`:

        payoff_{v,j} = hat_v(x_j) (p_j - 1{y = j})

    The context is the expert's probability, so the tilt is explicit; several experts are averaged. Squared bound: 1, or
    2 for labels.

    Examples
    --------
    >>> import orcast as oc
    >>> payoff = oc.BinaryCalibration() + oc.payoffs.Calibeating()
    >>> [part.name for part in payoff]
    ['binary', 'calibeating']
    """

    name = "calibeating"
    spaces = (Binary, Labels)
    wanted = "Binary() or Labels([...])"

    def _make(self, cell_grid: CellGrid, witness: Witness) -> CellPayoff:
        return GivenCellPayoff(witness, self.grid, cell_grid.expert)


class DistributionCalibration(Payoff):
    """Among forecasts close to a distribution q, outcomes are distributed like q (paper, appendix B).

    Parameters
    ----------
    anchors
        Number of distributions q to learn: each forecast of the expert further than `width` from all before it.
    width
        Smallest distance between anchors; 0.1 by default.
    thresholds
        Number of equally spaced points z on an `Interval`; 19 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    The payoff is weighted by the similarity of p and q:

        payoff_{q,z} = c_q(p) (F_p(z) - 1{y <= z}),    c_q(p) = softmax_q(-d(p, q)^2 / width^2)

    On an `Interval` d^2 is the mean of (F_p - F_q)^2 over the thresholds. On finite spaces the witness is the indicator
    of each cell and d^2 = sum (p - q)^2 / 2. Squared bound: the number of thresholds, or 2.

    Examples
    --------
    >>> import orcast as oc
    >>> DistributionCalibration(anchors=2).on(oc.Interval(0, 1)).size
    38
    """

    name = "distribution"
    options = ("anchors", "width", "thresholds")

    def __init__(
        self,
        anchors: int = 8,
        *,
        width: float = 0.1,
        thresholds: int = 19,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        self.anchors = whole(anchors, "anchors", 1, 256)
        self.width = number(width, "width", 1e-3, 1e3)
        self.thresholds = whole(thresholds, "thresholds", 1, 200)
        self._settings(context, weight)

    def on(self, space: Space, experts: int = 1) -> Part:
        count, points, labels = self.anchors, np.empty(0), None
        if isinstance(space, Interval):
            points = np.linspace(space.low, space.high, self.thresholds + 2)[1:-1]
            size, bound, unit = self.thresholds, float(self.thresholds), 1.0 / self.thresholds
        elif isinstance(space, FiniteSpace):
            labels, size, bound, unit = Witness.constant(np.eye(space.cells)), space.cells, 2.0, 0.5
        else:
            raise wrong_space(self, "an Interval or a finite space", space)

        def witness_of(cell_grid: CellGrid) -> Witness:
            return Witness.below(cell_grid, points) if labels is None else labels

        def cell_payoff(cell_grid: CellGrid, state: dict[str, Array]) -> CellPayoff:
            witness, rows = witness_of(cell_grid), state["anchors"]
            # d(p, q)^2 without |p|^2, which all weights share: linear in p, as the masses sum to one
            away = unit * (np.einsum("ij,ij->i", rows, rows)[:, None] - 2.0 * rows @ witness.mean)
            away[max(int(state["known"][0]), 1) :] = FAR
            return AnswerCellPayoff(witness, -away / self.width**2)

        def learn(cell_grid: CellGrid, state: dict[str, Array]) -> None:
            known = int(state["known"][0])
            if known >= count or not cell_grid.expert.size:
                return
            row = witness_of(cell_grid).mean @ cell_grid.expert
            away = state["anchors"][:known] - row
            if known == 0 or (np.einsum("ij,ij->i", away, away) * unit).min() > self.width**2:
                state["anchors"][known] = row
                state["known"][0] += 1.0

        def nothing_known() -> dict[str, Array]:
            return {"anchors": np.zeros((count, size)), "known": np.zeros(1)}

        return Part(self, count * size, bound, cell_payoff, points, state=nothing_known, learn=learn)
