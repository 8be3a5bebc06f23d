"""ORCA, the paper's oracle (section 5, algorithm 2): gradient descent on the worst case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as option
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import GridPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound, HalfSpaceClaim, log_masses
from orcast.paper.exact.base import expert_alone
from orcast.paper.families import Family, GaussianMixture, Softmax
from orcast.paper.slopes import slopes, smooth_slopes
from orcast.payoffs import CellGrid
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import FiniteSpace, OrderedSpace
from orcast.spaces.base import whole
from orcast.validation import number, short

Array = NDArray[np.float64]

# Values that differ by this share of their range are tied.
TIED = 1e-9


def _check(options: object, check: Callable[..., Any], **limits: tuple[Any, Any]) -> None:
    """Check options of a frozen data class against their limits."""
    for name, (least, most) in limits.items():
        object.__setattr__(options, name, check(getattr(options, name), name, least, most))


@dataclass(frozen=True)
class Adam:
    """Adam, the optimiser of ORCA's search.

    Parameters
    ----------
    rate
        Size of a step in each parameter.
    first, second
        Discounts of the mean gradient and of its square.

    Notes
    -----
    With g the gradient, after n steps,

        m <- first m + (1 - first) g,    v <- second v + (1 - second) g^2,    step = -rate m' / sqrt(v')

    where m' = m / (1 - first^n) and v' = v / (1 - second^n). Kingma and Ba (2015), "Adam: a method for stochastic
    optimization", ICLR; the paper uses it in section 5.

    Examples
    --------
    >>> Adam(rate=0.1)
    Adam(rate=0.1, first=0.9, second=0.999)
    """

    rate: float = 0.03
    first: float = 0.9
    second: float = 0.999

    def __post_init__(self) -> None:
        _check(self, number, rate=(1e-12, 1e3), first=(0.0, 1.0 - 1e-12), second=(0.0, 1.0 - 1e-12))


@dataclass(frozen=True)
class Orca:
    """ORCA (paper, section 5, algorithm 2): Adam on the worst case of a parametrised forecast, the best iterate kept.

        minimise over the parameters   max_k  E_{y ~ q_k} <S, payoff(p, y)>,    q_k uniform on cell k

    The search ends when the worst case is at most zero, or after `steps`.  There is no guarantee that it becomes zero:
    `certificate.holds` is the slack rule, exact over all outcomes, `certificate.half_space` the worst case over the
    cells, over the rounds, and `certificate.approximation` by how much the true maximum may exceed that.

    Parameters
    ----------
    steps, optimizer
        Steps of the search, and `Adam`.
    family
        Forecasts on the cells: `Softmax`, `GaussianMixture`, or your own.
    cells, atoms
        Even cells; without bounds they divide the round's window.  `atoms=True` adds an atom at each bound, for
        outcomes that sit on it.
    jitter, seed
        Noise added to the start, which is the expert's forecast.
    soft
        Temperature of a softmax in place of the maximum, in units of the norm of the ledger; 0 for none.
    smooth
        Smooth the levels of quantiles in gradients, which vanish between levels.

    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Orca(steps=400))
    >>> p = recal.predict(); recal.update(0.3)
    >>> recal.predict().certificate.holds
    True
    """

    steps: int = 400
    family: Family = option(default_factory=Softmax)
    optimizer: Adam = option(default_factory=Adam)
    cells: int = 50
    soft: float = 0.0
    smooth: bool = True
    atoms: bool = False
    jitter: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, whole, steps=(1, 10**6), cells=(1, 1000), seed=(0, 10**9))
        if isinstance(self.family, type) or not isinstance(self.family, Family):
            raise TypeError(f"expected a family such as Softmax() or GaussianMixture(3), got {short(self.family)}")
        if not isinstance(self.optimizer, Adam):
            raise TypeError(f"expected Adam(...) as optimizer, got {short(self.optimizer)}")
        for name in ("smooth", "atoms"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"expected {name}=True or False, got {short(getattr(self, name))}")
            object.__setattr__(self, name, bool(getattr(self, name)))
        _check(self, number, soft=(0.0, 1e6), jitter=(0.0, 10.0))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if isinstance(bound_payoff.space, FiniteSpace):
            if isinstance(self.family, GaussianMixture):
                raise TypeError(f"expected an ordered space for GaussianMixture, got {bound_payoff.space!r}")
            return DenseEngine(bound_payoff, expert_alone(bound_payoff), OrcaSolver(self), sizes)
        space = bound_payoff.space
        assert isinstance(space, OrderedSpace)
        if self.cells > space.cells and not math.isfinite(space.high - space.low):
            raise ValueError(f"expected at most the {space.cells} cells of {space!r} for Orca, got {self.cells}")
        edges = None
        if self.atoms and math.isfinite(space.high - space.low):
            edges = np.concatenate(([space.low], np.linspace(space.low, space.high, self.cells + 1), [space.high]))
        return DenseEngine(bound_payoff, GridPrior(bound_payoff, self.cells, edges), OrcaSolver(self), sizes)

    def to_plain(self) -> dict[str, Any]:
        """Plain data; a user-defined family must be passed again."""
        adam = {"kind": "Adam", **vars(self.optimizer)}
        return {"kind": "Orca", **vars(self), "family": self.family.to_plain(), "optimizer": adam}

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Orca:
        """Rebuild the oracle from its plain form."""
        options = {name: value for name, value in data.items() if name != "kind"}
        family, adam = dict(options.pop("family")), dict(options.pop("optimizer"))
        adam.pop("kind")
        known = {"Softmax": Softmax, "GaussianMixture": GaussianMixture}
        kind = family.pop("kind")
        if kind not in known:
            raise ValueError(f"expected the oracle again as oracle= (the family {kind} is not saved), got none")
        return cls(family=known[kind](**family), optimizer=Adam(**adam), **options)


class OrcaSolver:
    """Search for the forecast of a round."""

    temperature = 1.0

    def __init__(self, options: Orca) -> None:
        self.options = options

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Search; the ledger's slack rule judges what was found."""
        options, cell_grid = self.options, setup.cell_grid
        parameters = options.family.start(cell_grid, setup.prior)
        if options.jitter > 0.0:
            rng = np.random.default_rng([options.seed, setup.rounds])
            parameters = parameters + options.jitter * rng.standard_normal(parameters.size)
        soft = options.soft * math.sqrt(sum(float(s @ s) for s in search.cumulative))
        p = self._search(search, cell_grid, parameters, soft)
        search.consider(log_masses(p), 0.0)
        search.claim = self._claim(search, p)

    def _claim(self, search: CandidateSearch, p: Array) -> HalfSpaceClaim:
        """Worst case over the cells, and the amount by which the true one may exceed it."""
        rounds = search.weight
        search.rescale(p)
        value = float(self._field(search, p).max()) / rounds
        top = sum(
            cell_payoff.assess(s, 0.0, p)[0]
            for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True)
        )
        return HalfSpaceClaim(value, max(0.5 * float(np.max(top)) / rounds - value, 0.0))

    # --- the search
    @staticmethod
    def _field(search: CandidateSearch, p: Array) -> Array:
        """Mean of <S, payoff> over each cell."""
        v = np.zeros(p.size)
        for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True):
            if s.any():
                regret = isinstance(cell_payoff, RegretCellPayoff)
                v += cell_payoff.field(s, p) if regret else s @ cell_payoff.table(p)
        return v

    def _masses(self, cell_grid: CellGrid, parameters: Array) -> Array:
        """Checked masses of the family."""
        p = np.asarray(self.options.family.masses(cell_grid, parameters), dtype=np.float64)
        if p.shape != (cell_grid.cells,) or not (p >= 0.0).all() or abs(p.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"expected masses on {cell_grid.cells} cells that add up to 1 from the family, got {short(p.tolist())}"
            )
        return p

    def _search(self, search: CandidateSearch, cell_grid: CellGrid, parameters: Array, soft: float) -> Array:
        """Best masses of a gradient descent on the worst case."""
        family, adam = self.options.family, self.options.optimizer
        first, second = np.zeros(parameters.size), np.zeros(parameters.size)
        best, found = parameters, math.inf
        pairs = [
            (cell_payoff, s) for cell_payoff, s in zip(search.cell_payoffs, search.cumulative, strict=True) if s.any()
        ]
        for step in range(self.options.steps + 1):
            p = self._masses(cell_grid, parameters)
            search.rescale(p)
            reach = self._field(search, p)
            if reach.max() < found:
                best, found = parameters, float(reach.max())
            if found <= 0.0 or step == self.options.steps:
                break
            weights = choose(reach, soft)
            slopes_of = smooth_slopes if self.options.smooth else slopes
            found_slopes = [slopes_of(cell_payoff, s, p, weights) for cell_payoff, s in pairs]
            gradient = family.pull(cell_grid, parameters, np.sum(found_slopes, axis=0))
            first = adam.first * first + (1.0 - adam.first) * gradient
            second = adam.second * second + (1.0 - adam.second) * gradient**2
            size = np.sqrt(second / (1.0 - adam.second ** (step + 1))) + 1e-12
            parameters = parameters - adam.rate * (first / (1.0 - adam.first ** (step + 1))) / size
        return self._masses(cell_grid, best)


def choose(values: Array, temperature: float) -> Array:
    """Weights on the largest value (of ties the first), or a softmax at a temperature."""
    top = float(values.max())
    if temperature > 0.0:
        soft: Array = np.exp((values - top) / temperature)
        return soft / float(soft.sum())
    weights = np.zeros(values.size)
    weights[int(np.argmax(values >= top - TIED * (top - float(values.min()))))] = 1.0
    return weights
