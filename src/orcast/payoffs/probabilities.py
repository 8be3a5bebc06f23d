"""Calibration of probabilities: binary outcomes and labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import CellGrid, CellPayoff, Part, Payoff, wrong_space
from orcast.payoffs.calibration import GRID, checked_grid
from orcast.payoffs.cell_payoffs import EventCellPayoff, GivenCellPayoff, Witness
from orcast.spaces import Binary, FiniteSpace, Labels, Space

Array = NDArray[np.float64]


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
