"""Methods for several experts, level by level; experts may be absent in some rounds, and come anew at any time."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.baselines.quantity import Array, QuantityBaseline
from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from orcast.validation import number, short

# Below any range of regrets.
_TINY = 1e-150

Rows = dict[str, Array]


class ExpertsBaseline(QuantityBaseline):
    """A method that weighs experts; what it reads of each are its quantiles at the method's levels."""

    def predict(
        self, forecast: object = None, *, experts: Mapping[str, object] | None = None, id: Hashable = None
    ) -> Any:
        """One forecast of several experts by name; one that is None or left out is absent.

        A single forecast is that of the expert "expert".
        """
        if forecast is not None and experts is not None:
            raise TypeError("expected a forecast or experts by name, got both")
        return super().predict({"expert": forecast} if experts is None else experts, id=id)

    def _read(self, experts: object) -> Rows:
        if not isinstance(experts, Mapping):
            raise TypeError(f"expected forecasts of experts by name, got {short(experts)}")
        rows = {}
        for name, forecast in experts.items():
            if not isinstance(name, str):
                raise TypeError(f"expected a str as the name of an expert, got {short(name)}")
            if forecast is not None:
                rows[name] = self._quantity.read_at_levels(forecast)
        if not rows:
            raise TypeError("expected the forecast of at least one expert, got none")
        return rows

    def _issue(self, rows: Rows) -> Forecast:
        return self._quantity.issue(self._played(rows, self._now()))

    def _played(self, rows: Rows, then: Any) -> Array:
        """The quantiles that are issued, before bounds."""
        q = np.array(list(rows.values()))
        played: Array = np.sort((self._shares(tuple(rows), then) * q).sum(axis=0))
        return played

    @abstractmethod
    def _shares(self, names: tuple[str, ...], then: Any) -> Array:
        """The weights of the experts, a row each, at each level."""


class EqualWeights(ExpertsBaseline):
    """The mean of the experts' quantiles at each level, with equal weights.

    What is hard to beat with few rounds (Lichtendahl, Grushka-Cockayne and Winkler, 2013, "Is it better to average
    probabilities or quantiles?", Management Science 59).

    >>> import orcast as oc
    >>> from orcast.baselines import EqualWeights
    >>> mean = EqualWeights(0, 10)
    >>> p = mean.predict(experts={"tree": oc.Normal(4, 1), "net": oc.Normal(6, 3)})
    >>> round(p.mean(), 2), round(p.std(), 1)
    (5.0, 2.0)
    """

    def _shares(self, names: tuple[str, ...], then: None) -> Array:
        return np.full((len(names), 1), 1.0 / len(names))

    def _learn(self, rows: Rows, y: float, then: None) -> None:
        pass

    def _described(self) -> str:
        return f"{self.levels.size} levels"


class BernsteinAggregation(ExpertsBaseline):
    """Bernstein online aggregation (BOA) of the experts' quantiles, at each level by itself: CRPS learning.

    At level a let q be what was issued and q_k the quantile of expert k.  Its regret in the round is that of the
    pinball loss, linear at q; its rate follows its own regrets, and they count with a second-order correction:

        r_k = (1{y < q} - a) (q - q_k),    V_k <- V_k + r_k^2,    E <- max(E, max over k of |r_k|)
        eta_k = min(1 / (2 E), sqrt(log(K) / V_k))
        R_k <- R_k + (r_k - eta_k r_k^2 + 2 E 1{eta_k r_k > 1/2}) / 2
        weight of k proportional to eta_k exp(eta_k R_k)

    K experts known so far.  An absent expert has no weight in the round and no regret from it; a new one begins with
    R = 0 and the mean V of the others.  Old regrets and rates fade by the part `forget` in each round.  E is one for
    all experts, where the authors have one each: an expert whose first regret is exactly 0 would otherwise get all of
    the weight, and keep it.  The smoothing of weights over levels of Berrisch and Ziel is left out.  Quantiles are
    sorted before they are issued.  The state is two numbers for each expert and level.

    References: Wintenberger (2017), "Optimal learning with Bernstein online aggregation", Machine Learning 106;
    Berrisch and Ziel (2023), "CRPS learning", Journal of Econometrics 237 (with the R package profoc).

    >>> import orcast as oc
    >>> from orcast.baselines import BernsteinAggregation
    >>> boa = BernsteinAggregation(0, 10, levels=[0.25, 0.5, 0.75])
    >>> for _ in range(100):
    ...     p = boa.predict(experts={"good": oc.Normal(5, 0), "poor": oc.Normal(8, 1)}); boa.update(5)
    >>> boa.weights["good"].round(1).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS, forget: float = 0.0) -> None:
        super().__init__(low, high, levels)
        self.forget = number(forget, "part that is forgotten", 0.0, 1.0)
        self._names: tuple[str, ...] = ()
        nobody = np.empty((0, self._quantity.levels.size))
        # R and V of each expert, and E
        self._state = nobody, nobody, np.zeros(self._quantity.levels.size)

    @property
    def weights(self) -> dict[str, Array]:
        """The weights at each level of all experts known so far, were all of them present now."""
        return dict(zip(self._names, self._shares(self._names, self._now()), strict=True)) if self._names else {}

    def _now(self) -> tuple[tuple[str, ...], tuple[Array, Array, Array]]:
        return self._names, self._state  # made anew in each round

    def _shares(self, names: tuple[str, ...], then: tuple[tuple[str, ...], tuple[Array, Array, Array]]) -> Array:
        regrets, squares, scale = _joined(*then, names)
        at = [*dict.fromkeys((*then[0], *names))]
        own = [at.index(name) for name in names]
        rates = _rates(squares, scale)[own]
        logs = np.log(rates) + rates * regrets[own]
        shares = np.exp(logs - logs.max(axis=0))
        return np.asarray(shares / shares.sum(axis=0))

    def _learn(self, rows: Rows, y: float, then: Any) -> None:
        regrets, squares, scale = _joined(self._names, self._state, tuple(rows))
        names = tuple(dict.fromkeys((*self._names, *rows)))
        own = [names.index(name) for name in rows]
        played = self._played(rows, then)
        r = ((y < played) - self._quantity.levels) * (played - np.array(list(rows.values())))
        kept = 1.0 - self.forget
        scale = np.maximum(kept * scale, np.abs(r).max(axis=0))
        squares, regrets = kept * squares, kept * regrets
        squares[own] += r * r
        rates = _rates(squares, scale)[own]
        regrets[own] += 0.5 * (r - rates * r * r + np.where(rates * r > 0.5, 2.0 * scale, 0.0))
        self._names, self._state = names, (regrets, squares, scale)

    def _described(self) -> str:
        return f"{self.levels.size} levels, {len(self._names)} experts"


def _joined(
    known: tuple[str, ...], state: tuple[Array, Array, Array], names: tuple[str, ...]
) -> tuple[Array, Array, Array]:
    """The state with those experts in it that are new."""
    regrets, squares, scale = state
    new = len(set(names).difference(known))
    if not new:
        return state
    usual = squares.mean(axis=0, keepdims=True) if known else np.zeros((1, scale.size))
    return np.pad(regrets, ((0, new), (0, 0))), np.concatenate((squares, np.repeat(usual, new, axis=0))), scale


def _rates(squares: Array, scale: Array) -> Array:
    fast = 0.5 / np.maximum(scale, _TINY)
    slow = np.sqrt(math.log(max(len(squares), 2)) / np.maximum(squares, _TINY * _TINY))
    return np.asarray(np.minimum(fast, slow))
