"""Rivals that combine several base forecasts; each may be missing in some rounds and join at any time."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.forecasts import Forecast
from orcast.forecasts.ordered import PERCENTS
from research.rivals.base import Array, QuantityRival
from research.rivals.levels import RATES

_TINY = 1e-150  # below any range of regrets

Rows = dict[str, Array]
State = tuple[Array, Array, Array]


class ExpertsRival(QuantityRival):
    """Method that weights base forecasts at each of its levels."""

    def predict(
        self, forecast: object = None, *, experts: Mapping[str, object] | None = None, id: Hashable = None
    ) -> Any:
        """Combine base forecasts by name; one that is None is missing.  A single forecast is called "expert"."""
        return super().predict({"expert": forecast} if experts is None else experts, id=id)

    def _read(self, experts: Any) -> Rows:
        rows = {name: self.quantity.read_at_levels(each) for name, each in experts.items() if each is not None}
        if not rows:
            raise TypeError("expected the forecast of at least one expert, got none")
        return rows

    def _issue(self, rows: Rows) -> Forecast:
        return self.quantity.issue(self._combined(rows, self._snapshot()))

    def _combined(self, rows: Rows, then: Any) -> Array:
        """Return the weighted quantiles, before they are clipped to the bounds."""
        q = np.array(list(rows.values()))
        return np.asarray(np.sort((self._weights(tuple(rows), then) * q).sum(axis=0)))

    @abstractmethod
    def _weights(self, names: tuple[str, ...], then: Any) -> Array:
        """Return the weights of the experts, a row each, at each level."""


class EqualWeights(ExpertsRival):
    """Mean of the experts' quantiles at each level.

    Hard to beat with few rounds (Lichtendahl, Grushka-Cockayne and Winkler, 2013, "Is it better to average
    probabilities or quantiles?", Management Science 59).
    """

    def _weights(self, names: tuple[str, ...], then: None) -> Array:
        return np.full((len(names), 1), 1.0 / len(names))

    def _observe(self, rows: Rows, then: None, y: float) -> None:
        pass


class BOA(ExpertsRival):
    """Bernstein online aggregation of the experts' quantiles, each level by itself: CRPS learning.

    At level a let q be the issued quantile and q_k that of expert k.  Its regret in the round is that of the pinball
    loss, linear at q; its rate follows its own regrets, which count with a second-order correction:

        r_k = (1{y < q} - a) (q - q_k),    V_k <- V_k + r_k^2,    E <- max(E, max over k of |r_k|)
        eta_k = min(1 / (2 E), sqrt(log(K) / V_k))
        R_k <- R_k + (r_k - eta_k r_k^2 + 2 E 1{eta_k r_k > 1/2}) / 2
        weight of k proportional to eta_k exp(eta_k R_k)

    with K experts so far.  A missing expert has no weight and no regret in the round; a new one begins with R = 0 and
    the mean V of the others.  E is one for all experts, where the authors have one each: an expert whose first regret
    is exactly 0 would otherwise get all of the weight, and keep it.  The smoothing of weights over levels of Berrisch
    and Ziel is left out.  Quantiles are sorted before they are issued.

    References: Wintenberger (2017), "Optimal learning with Bernstein online aggregation", Machine Learning 106;
    Berrisch and Ziel (2023), "CRPS learning", Journal of Econometrics 237 (with the R package profoc).
    """

    def __init__(self, low: float, high: float, *, levels: ArrayLike = PERCENTS) -> None:
        super().__init__(low, high, levels)
        self._names: tuple[str, ...] = ()
        empty = np.empty((0, self.levels.size))
        self._state: State = empty, empty, np.zeros(self.levels.size)  # R, V and E

    @property
    def weights(self) -> dict[str, Array]:
        """Weights at each level if all experts so far had a forecast."""
        if not self._names:
            return {}
        return dict(zip(self._names, self._weights(self._names, self._snapshot()), strict=True))

    def _snapshot(self) -> tuple[tuple[str, ...], State]:
        return self._names, self._state  # new arrays in each round

    def _weights(self, names: tuple[str, ...], then: tuple[tuple[str, ...], State]) -> Array:
        regrets, squares, scale = _joined(*then, names)
        at = [*dict.fromkeys((*then[0], *names))]
        own = [at.index(name) for name in names]
        rates = _rates(squares, scale)[own]
        logs = np.log(rates) + rates * regrets[own]
        shares = np.exp(logs - logs.max(axis=0))
        return np.asarray(shares / shares.sum(axis=0))

    def _observe(self, rows: Rows, then: Any, y: float) -> None:
        regrets, squares, scale = _joined(self._names, self._state, tuple(rows))
        names = tuple(dict.fromkeys((*self._names, *rows)))
        own = [names.index(name) for name in rows]
        issued = self._combined(rows, then)
        r = ((y < issued) - self.levels) * (issued - np.array(list(rows.values())))
        scale = np.maximum(scale, np.abs(r).max(axis=0))
        squares, regrets = squares.copy(), regrets.copy()
        squares[own] += r * r
        rates = _rates(squares, scale)[own]
        regrets[own] += 0.5 * (r - rates * r * r + np.where(rates * r > 0.5, 2.0 * scale, 0.0))
        self._names, self._state = names, (regrets, squares, scale)


class AgACI(BOA):
    """Aggregated adaptive conformal inference (Zaffran et al., 2022): BOA of ACI with several rates, at each level.

    For each rate the base forecast is evaluated at a level alpha that follows ACI,

        alpha <- alpha + rate (a - 1{y <= Q(alpha)})

    from a on, with the bounds beyond levels 0 and 1; BOA aggregates these quantiles by their pinball losses.

    Reference: "Adaptive conformal predictions for time series", ICML 2022.
    """

    def __init__(
        self, low: float, high: float, *, levels: ArrayLike = PERCENTS, rates: tuple[float, ...] = RATES
    ) -> None:
        super().__init__(low, high, levels=levels)
        self.rates = np.array(rates)[:, None]
        self.alphas = np.tile(self.levels, (len(rates), 1))

    def _read(self, experts: Any) -> Rows:
        row = self.quantity.read(experts["expert"])
        return {str(k): self.quantity.quantile(row, alpha) for k, alpha in enumerate(self.alphas)}

    def _observe(self, rows: Rows, then: Any, y: float) -> None:
        super()._observe(rows, then, y)
        self.alphas = self.alphas + self.rates * (self.levels - (y <= np.array(list(rows.values()))))


def _joined(known: tuple[str, ...], state: State, names: tuple[str, ...]) -> State:
    """Return the state extended by new experts."""
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
