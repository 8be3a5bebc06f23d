"""Recalibrator: wrap the forecasts you have."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.engine import Committee, Oracle
from orcast.game import Forecaster, Played
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.persistence.state import read_state, write_state
from orcast.spaces import Space

Array = NDArray[np.float64]


class Recalibrator:
    """Calibrated, and usually more accurate, forecasts from someone else's, on any sequence of outcomes.

        guarantee.miscalibration  <=  guarantee.promised    after every round (paper, section 4.2; docs/theory.md)

    By default: quantile and moment calibration and no regret in CRPS, played by `Committee`; nothing to tune.
    Without a space: any number, `Line`.  On `Binary` and `Labels` probabilities are calibrated.
    `forecast` may be quantiles by level, `Normal`, `Ensemble`, a (point, scale) pair, or anything with
    `ppf` or `cdf`; a probability, or one for each label.  `outside="clip"` clips outcomes beyond the bounds
    instead of refusing them.  What `id`, `drop`, `memory` and `max_pending` mean is said at
    `Forecaster`, the game that this class wraps.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 36_000))
    >>> p = recal.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400})
    >>> low, high = p.interval(0.9)
    >>> p.certificate.holds
    True
    >>> recal.update(9_240)
    """

    def __init__(
        self,
        space: Space | None = None,
        payoff: Payoff | None = None,
        *,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        max_pending: int = 1000,
    ) -> None:
        self.game = Forecaster(  # the game that is played
            space,
            payoff,
            oracle=Committee() if oracle is None else oracle,
            memory=memory,
            outside=outside,
            max_pending=max_pending,
        )

    @property
    def space(self) -> Space:
        """Where the outcomes lie."""
        return self.game.space

    @property
    def payoff(self) -> Payoff:
        """What is kept calibrated."""
        return self.game.payoff

    @property
    def oracle(self) -> Oracle:
        """How it is played."""
        return self.game.oracle

    def predict(
        self,
        forecast: object = None,
        *,
        experts: Mapping[str, object] | None = None,
        x: Any = None,
        id: Hashable = None,
    ) -> Any:
        """Recalibrate one forecast, or several experts' by name; the round then waits for its outcome.

        `x` are the features that contexts and utilities look at.  An expert that is None, or left out, does not
        count in this round.  Without `id` it replaces an unnamed round that still waits, so name rounds whose
        outcomes may come late.

        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 10), oc.QuantileCalibration(context=oc.by("day", values="MT")))
        >>> p = recal.predict(experts={"tree": oc.Normal(4, 1), "net": None}, x={"day": "M"}); recal.update(5)
        """
        if forecast is None and experts is None:
            raise TypeError("expected a forecast, got None (a game without an expert is a Forecaster)")
        return self.game.predict(forecast, experts=experts, x=x, id=id)

    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Book the outcome of the unnamed round, or of a named one."""
        self.game.update(y, id=id)

    def drop(self, id: Hashable = None) -> None:
        """Forget a round whose outcome will never come."""
        self.game.drop(id)

    @property
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the rounds that wait, the oldest first; None is the unnamed one."""
        return self.game.pending

    @property
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, so far."""
        return self.game.guarantee

    def run(
        self,
        forecasts: Any = None,
        outcomes: Any = (),
        *,
        experts: Mapping[str, Any] | None = None,
        x: Any = None,
        levels: ArrayLike | None = None,
        at: ArrayLike | None = None,
    ) -> Array:
        """Recalibrate a whole history, in one compiled loop where there is one; a row a round.

        `forecasts` is a sequence of anything that `predict` takes, or, with `levels`, an array with a row of
        quantiles a round; `experts` are several of these by name.  `x` is a sequence of features.  The rows are
        quantiles at the levels `at` (0.01, ..., 0.99 by default), or probabilities on finite spaces.

        >>> import numpy as np, orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> recal.run([[0.4, 0.5, 0.6], [0.3, 0.5, 0.7]], [0.45, 0.7], levels=[0.1, 0.5, 0.9], at=[0.05, 0.95]).shape
        (2, 2)
        """
        return self.game.run(forecasts, outcomes, experts=experts, x=x, levels=levels, at=at)

    def play(
        self,
        forecasts: Any = None,
        outcomes: Any = (),
        *,
        experts: Mapping[str, Any] | None = None,
        x: Any = None,
        levels: ArrayLike | None = None,
        at: ArrayLike | None = None,
    ) -> Played:
        """As `run`, but also says mean, spread and certificate of each round: see `Played`."""
        return self.game.play(forecasts, outcomes, experts=experts, x=x, levels=levels, at=at)

    def replay(self, history: Iterable[tuple[object, Any]]) -> None:
        """Warm up from past (forecast, outcome) pairs, as if they had come one by one; `run` also takes features.

        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> recal.replay([(oc.Normal(0.5, 0.1), 0.6), (oc.Normal(0.6, 0.1), 0.55)])
        >>> recal.guarantee.rounds
        2
        """
        pairs = list(history)
        for pair in pairs:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
                raise TypeError(f"expected (forecast, outcome) pairs, got {pair!r}")
        self.game.run([forecast for forecast, _ in pairs], [y for _, y in pairs], at=[0.5])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        write_state(self.game, path, "Recalibrator")

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        payoff: Payoff | None = None,
        space: Space | None = None,
        oracle: Oracle | None = None,
    ) -> Recalibrator:
        """Continue from a file, bit for bit on the same kind of machine; refuses what it cannot read, in one sentence.

        Functions are not saved: a payoff, space or oracle that has them is given again, and must be configured as the
        saved one was.
        """
        return cls._of(read_state(path, "Recalibrator", payoff=payoff, space=space, oracle=oracle))

    @classmethod
    def _of(cls, game: Forecaster) -> Recalibrator:
        """Around a game that is there."""
        self = cls.__new__(cls)
        self.game = game
        return self

    def __repr__(self) -> str:
        return f"Recalibrator({self.space}, {self.guarantee})"

    def _repr_html_(self) -> str:
        from orcast.report.notebook import recalibrator_html

        return recalibrator_html(self)
