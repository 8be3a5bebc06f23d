"""Forecaster and Recalibrator: the loop of predict and update."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import ledger as _ledger
from orcast import limits
from orcast.adapters import expert_row
from orcast.constants import LONGEST_SEASON, SHORTEST_SEASON
from orcast.draws import seed_of
from orcast.engine import Committee, Engine, Equilibrium, Oracle
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.finite import FiniteEngine
from orcast.engine.oracles import draws_anything
from orcast.engine.ordered import OrderedEngine
from orcast.forecasts import PERCENTS, as_levels
from orcast.inputs import ALONE, FeatureReader, read_history, read_outcomes, sequence_of, where
from orcast.ledger import Guarantee
from orcast.locks import StateLock, locked
from orcast.payoffs import Payoff, default_payoff
from orcast.rounds import Rounds, checked_mode, watchable
from orcast.serialise import SettledIds, plain_features
from orcast.spaces import Line, OrderedSpace, Space
from orcast.spaces.base import whole
from orcast.validation import number, short, warn_user

if TYPE_CHECKING:
    from orcast.guard import Guard
    from orcast.monitors import RecalibratorMonitor
    from orcast.pool import Pool

Array = NDArray[np.float64]


class RunResult(NamedTuple):
    """Result of `run(..., detailed=True)`: arrays with one entry per round.

    Attributes
    ----------
    rows
        Quantiles or probabilities.
    mean
        Mean of the nearest normal distribution; nan on spaces without numbers.
    sd
        Its standard deviation.
    holds
        True if the certificate of the round held.
    promised
        Bound on the miscalibration, known before the outcome.
    miscalibration
        Miscalibration after the outcome.
    excess
        Sum added to the bound, known before the outcome.
    base
        True if the round published the base forecast (`mode=`): then `rows`, `mean` and `sd` are those of the base
        forecast, and the bounds are those of the recalibrated one.

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1))
    >>> result = recal.run([oc.Normal(0.5, 0.1)] * 20, [0.6] * 20, detailed=True)
    >>> result.rows.shape, bool((result.miscalibration <= result.promised).all())
    ((20, 99), True)
    """

    rows: Array
    mean: Array
    sd: Array
    holds: NDArray[np.bool_]
    promised: Array
    miscalibration: Array
    excess: Array
    base: NDArray[np.bool_]


class Forecaster:
    """Calibrated forecasts on any sequence of outcomes, with or without a base forecast.

    Parameters
    ----------
    space, payoff, memory, outside, max_pending, pool, seasons, randomised, mode
        As in `Recalibrator`.
    oracle
        Method that chooses each forecast; by default `Equilibrium()`.

    Notes
    -----
    `predict` issues a forecast, whose round is then pending; `update` settles it with its outcome. Without `id` there
    is one unnamed round, which a second unnamed `predict` replaces. Named rounds may be settled late and in any order,
    or dropped. Each call holds the `lock`. This is procedure 1 and algorithm 1 of the paper:

        || mean payoff ||_+  <=  sqrt(B (T + 64)) / T    on any sequence, if certificates held and no outcome was late

    With `memory` the bound is on the discounted mean, plus the remaining credit:

        || discounted mean ||_+^2  <=  B (1 - g)(1 + g^T) / ((1 + g)(1 - g^T)),    g = 1 - 1/memory

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration())
    >>> p = recal.predict(); recal.update(0.3)
    >>> recal.guarantee.rounds
    1
    """

    # Set by subclasses: name in state files, default oracle, and True if a base forecast is required.
    kind: ClassVar[str] = "Forecaster"
    default_oracle: ClassVar[type[Oracle]] = Equilibrium
    expert_required: ClassVar[bool] = False
    _ordered, _ends = False, (-math.inf, math.inf)  # ends of an ordered space
    _takes_floats = False  # True if the engine takes one probability as a number

    def __init__(
        self,
        space: Space | None = None,
        payoff: Payoff | None = None,
        *,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        max_pending: int = 1000,
        pool: Pool | None = None,
        seasons: int | Sequence[int] = (),
        randomised: int | np.random.Generator | None = None,
        mode: str = "direct",
    ) -> None:
        if space is not None and not isinstance(space, Space):
            raise TypeError(f"expected a space such as Interval(low, high), got {space!r}")
        if payoff is not None and (not isinstance(payoff, Payoff) or type(payoff) is Payoff):
            raise TypeError(f"expected a payoff such as QuantileCalibration(), got {payoff!r}")
        if oracle is not None and (not hasattr(oracle, "bind") or isinstance(oracle, type)):
            raise TypeError(f"expected an oracle such as Committee() or Equilibrium(), got {oracle!r}")
        if outside not in ("raise", "clip"):
            raise ValueError(f"expected outside='raise' or 'clip', got {outside!r}")
        self.mode = checked_mode(mode)
        self.max_pending = whole(max_pending, "rounds as max_pending", 1, limits.LIMITS.pending)
        if pool is not None and not hasattr(pool, "admit"):
            raise TypeError(f"expected a Pool() as pool, got {short(pool)}")
        self.lock = StateLock()
        self.settled, self.reported = SettledIds(), set[str]()  # ids, and warnings that were shown
        self.file: tuple[str, bytes] | None = None  # path and first bytes of the file loaded or saved last
        self.pool = pool
        self.seasons = _checked_seasons(seasons)
        self.space: Space = Line() if space is None else space
        if isinstance(self.space, OrderedSpace):
            self._ordered, self._ends = True, (self.space.low, self.space.high)
        self.randomised = seed_of(randomised)
        self.payoff = default_payoff(self.space) if payoff is None else payoff
        self.oracle: Oracle = self.default_oracle() if oracle is None else oracle
        self.memory = None if memory is None else number(memory, "memory (in rounds)", 2.0, 1e12)
        self.outside = outside
        self.begin((ALONE,))

    def begin(self, experts: tuple[str, ...], sizes: Sequence[int] | None = None) -> None:
        """Start without rounds for these experts; `sizes` are the sizes of the parts, if a saved state has them."""
        limits.check("experts", len(experts))
        bound_payoff = BoundPayoff(self.space, self.payoff, experts, self.memory, drawn=self.randomised is not None)
        engine = self._bound(bound_payoff, sizes)
        if self.seasons:
            if not isinstance(engine, OrderedEngine):
                raise TypeError(f"expected seasons= only with Committee() on an ordered space, got {self.space!r}")
            engine.presume_seasons(self.seasons)
        if self.randomised is not None and not draws_anything(engine):
            raise ValueError(
                f"expected randomised= for quantities, BinaryCalibration, LabelCalibration or SwapRegret, "
                f"got it for {self.payoff!r} on {self.space!r} with {self.oracle!r}"
            )
        watched = watchable(self.space)
        self.rounds = Rounds(engine, self.max_pending, self.pool, seed=self.randomised, watched=watched, mode=self.mode)
        self._experts = experts
        self._takes_floats = isinstance(engine, FiniteEngine) and engine.binary and experts == (ALONE,)

    def _bound(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None) -> Engine:
        """Engine, connected to the pool if there is one."""
        if self.pool is None:
            return self.oracle.bind(bound_payoff, sizes)
        if not isinstance(self.oracle, Committee):
            raise TypeError(f"expected oracle=Committee() with pool=, got {self.oracle!r}")
        engine = self.oracle.bind(bound_payoff, sizes, pooled=True)
        self.pool.admit(engine)
        return engine

    @property
    def engine(self) -> Engine:
        """Engine of the rounds: the ledger and the committee."""
        return self.rounds.engine

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the experts, in the order of their rows."""
        return self._experts

    # --- the loop
    def predict(
        self,
        forecast: object = None,
        *,
        experts: Mapping[str, object] | None = None,
        x: Any = None,
        id: Hashable = None,
        reuse: bool = False,
    ) -> Any:
        """Issue a calibrated forecast of the next outcome.

        Parameters
        ----------
        forecast
            Base forecast: quantiles by level, `Normal`, `Ensemble`, an object with `ppf` or
            `cdf`; on finite spaces probabilities.
        experts
            Several base forecasts by name, instead of `forecast`. The first round names all of them; None or a missing
            name leaves an expert out of the round.
        x
            Features that contexts and utilities use.
        id
            Identifier of the round, for outcomes that arrive late.
        reuse
            Accept an id whose round was settled; at least the last 5,000 are known.

        Returns
        -------
        Forecast
            The forecast with its certificate; on finite spaces the forecast class of the space.

        Raises
        ------
        ValueError
            If `id` is pending or was settled, or an expert was not named in the first round.

        Examples
        --------
        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 10), oc.QuantileCalibration(context=oc.by("day", values="MT")))
        >>> p = recal.predict(experts={"tree": oc.Normal(4, 1), "net": None}, x={"day": "M"}); recal.update(5)
        """
        with self.lock:  # a decorator is slower
            if id is not None:
                self.rounds.check_new(id)
                if not reuse and id in self.settled:
                    text = f"expected a new id, got {short(id)}, which was settled: reuse=True allows it again"
                    raise ValueError(text)
            was = self.rounds, self._experts
            rows, features = self.read(forecast, experts, x)
            try:
                entry = self.rounds.issue(rows, features, id=id)
            except BaseException:
                self.rounds, self._experts = was
                raise
            return self.rounds.published(entry.record) if self.mode != "direct" else self.engine.forecast(entry.record)

    def read(self, forecast: object, experts: Mapping[str, object] | None, x: Any) -> tuple[Array | float | None, Any]:
        """Read the arguments of `predict`: rows for `rounds.issue`, and features as plain data."""
        if self.expert_required and forecast is None and experts is None:
            raise TypeError("expected a forecast, got None: use Forecaster to run without one")
        features = None if x is None else self._features(x)
        return self._rows(forecast, experts), features

    @locked
    def peek(self, forecast: object = None, *, experts: Mapping[str, object] | None = None, x: Any = None) -> Any:
        """Return the forecast that `predict` would issue now, without starting a round.

        Parameters
        ----------
        forecast, experts, x
            As in `predict`.

        Examples
        --------
        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> p = recal.peek(oc.Normal(0.4, 0.1))
        >>> recal.pending, recal.predict(oc.Normal(0.4, 0.1)).mean() == p.mean()
        ((), True)
        """
        was = self.rounds, self._experts
        try:
            rows, features = self.read(forecast, experts, x)
            # a payoff may take its size from the first round
            with self.rounds.branch():
                return self.rounds.published(self.rounds.peek(rows, features))
        finally:
            self.rounds, self._experts = was

    @locked
    def decide(self, p: Any, *, id: Hashable = None, rng: np.random.Generator | None = None) -> Any:
        """Draw the action of a pending round, with the weights that the `SwapRegret` of the payoff adds to the ledger.

        The draw belongs to the round: a second call returns the same action.

        Parameters
        ----------
        p
            Forecast of the round, as `predict` returned it.
        id
            Id of the round; by default the unnamed one.
        rng
            Source of the draw, if the recalibrator has no `randomised=`.

        Returns
        -------
        Any
            One of the actions.

        Notes
        -----
        The weights are softmax(sharpness E_p[u(a, y, x)] / range). If no one knows the draw before the outcome,
        `guarantee.empirical` bounds the swap regret of the drawn actions (docs/theory.md).

        Examples
        --------
        >>> import orcast as oc
        >>> umbrella = lambda action, y: -0.2 if action == "take" else -1.0 * y
        >>> payoff = oc.payoffs.SwapRegret(["take", "leave"], umbrella)
        >>> recal = oc.Recalibrator(oc.Binary(), payoff, randomised=7)
        >>> p = recal.predict(0.6)
        >>> recal.decide(p)
        'take'
        >>> recal.update(1)
        >>> round(recal.guarantee.empirical.actions["take"].utility, 3)
        -0.2
        """
        engine, entry = self.engine, self.rounds.find(id)
        if not isinstance(engine, DenseEngine) or not engine.actions.payoff:
            raise TypeError(f"expected a payoff with one SwapRegret, whose weights are drawn, got {self.payoff!r}")
        issued = engine.forecast(entry.record)
        if not isinstance(p, type(issued)) or not np.array_equal(p.mass, issued.mass):
            raise ValueError(f"expected the forecast of the pending round {short(id)}, got {short(p)}")
        return engine.decide(entry.record, rng)

    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Settle a pending round with its outcome.

        Parameters
        ----------
        y
            Outcome, a point of the space.
        id
            Identifier of the round; by default the unnamed round.

        Raises
        ------
        ValueError
            If the outcome is outside the space, or no such round is pending.
        """
        with self.lock:
            self.rounds.settle(self.space.outcome(y, self.outside), id=id)
            if id is not None:
                self.settled.add(id)

    @locked
    def drop(self, id: Hashable = None) -> None:
        """Drop a pending round that will get no outcome; the guarantee excludes it."""
        self.rounds.drop(id)

    @property
    @locked
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the pending rounds, oldest first; None is the unnamed one."""
        return self.rounds.ids

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rounds."""
        return self.engine.guarantee()

    @property
    @locked
    def guard(self) -> Guard | None:
        """Comparison with the base forecast, and which of the two is published; None in direct mode.

        Examples
        --------
        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1), mode="guarded")
        >>> result = recal.run([oc.Normal(0.5, 0.1)] * 60, [0.6] * 60, detailed=True)
        >>> recal.guard.publishes, int(result.base.sum()) == recal.guard.since - 1
        ('recalibrated', True)
        """
        if self.mode == "direct":
            return None
        from orcast.guard import GuardState

        state = GuardState(guarded=self.mode == "guarded")
        for row in self.rounds.monitor_rows()[-1:]:
            state.take(row)
        return state.report()

    @locked
    def change_mode(self, mode: str) -> None:
        """Publish by another mode from now on; a recalibrator keeps what it learnt in shadow.

        Parameters
        ----------
        mode
            "direct", "shadow" or "guarded".
        """
        self.mode = checked_mode(mode)
        self.rounds.change_mode(mode)

    @locked
    def recalibrated(self, id: Hashable = None) -> Any:
        """Recalibrated forecast of a pending round with its certificate, also where the base forecast is published.

        Parameters
        ----------
        id
            Id of the round; by default the unnamed one.
        """
        return self.rounds.forecast(self.rounds.find(id))

    @property
    @locked
    def monitor(self) -> RecalibratorMonitor:
        """Monitors of the base forecasts and of the recalibrated ones, as of now.

        Raises
        ------
        TypeError
            On spaces without PITs: `Circle`, `Box` and others.

        Examples
        --------
        >>> import orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> rows = recal.run([oc.Normal(0.3, 0.1)] * 20, [0.6] * 20)
        >>> recal.monitor.input.miscalibrated.kind
        'too low'
        """
        from orcast.monitors import RecalibratorMonitor

        return RecalibratorMonitor(self.space, self._experts, self.rounds.monitor_rows())

    def _rows(self, forecast: object, experts: Mapping[str, object] | None) -> Array | float | None:
        """Forecasts of the experts, one row each, nan if missing; a single probability may stay a number."""
        if experts is None:
            if forecast is None:
                return None
            if self._takes_floats and type(forecast) is float and 0.0 <= forecast <= 1.0:
                return forecast
            if self._experts == (ALONE,):
                row, crossed = expert_row(forecast, self.space)
                # plain numbers, because this runs in every round
                if crossed or row.item(-1) < self._ends[0] or row.item(0) > self._ends[1]:
                    self._report_rows(row, crossed)
                return row[None, :]
            experts = {ALONE: forecast}
        elif forecast is not None:
            raise TypeError("expected a forecast or experts=, got both")
        if not isinstance(experts, Mapping) or not all(isinstance(name, str) for name in experts):
            raise TypeError(f"expected experts= as forecasts by name, got {short(experts)}")
        there = {}
        for name, given in experts.items():
            if given is not None:
                with where(f" (expert {name!r})"):
                    there[name] = expert_row(given, self.space)
        if not there:
            raise ValueError("expected at least one expert in each round, got none")
        for each in there.values():
            self._report_rows(*each)
        self._admit(tuple(experts))
        return self._table({name: row for name, (row, _) in there.items()})

    def _table(self, rows: Mapping[str, Array]) -> Array:
        """Rows of a round, or of many, in the order of the experts; nan for a missing one."""
        missing = np.full(next(iter(rows.values())).shape, np.nan)
        return np.stack([rows.get(name, missing) for name in self._experts], axis=-2)

    @property
    def _fresh(self) -> bool:
        return not self.rounds.pending and not self.engine.guarantee().rounds

    def _admit(self, named: tuple[str, ...]) -> None:
        """Take the experts of the first round; refuse other names later."""
        new = [name for name in named if name not in self._experts]
        if new and self._fresh:
            self.begin(named)
        elif new:
            raise ValueError(
                f"expected experts among {short(list(self._experts))}, the names of the first round, "
                f"got {short(new[0])}: name all experts in the first round, later ones as None"
            )

    def _report_once(self, what: str, text: str) -> None:
        if what not in self.reported:
            self.reported.add(what)
            warn_user(f"{text} (reported once)", UserWarning)

    def _report_rows(self, rows: Array, crossed: bool) -> None:
        """Warn once about crossing quantiles, and forecasts outside the space."""
        if crossed:
            self._report_once("crossing", "crossing quantiles were sorted")
        if not self._ordered or not rows.size:
            return
        if self.outside != "clip" and ((rows[..., -1] < self._ends[0]) | (rows[..., 0] > self._ends[1])).any():
            self._report_once("outside", f"a forecast wholly outside {self.space!r} was moved to its nearest bound")

    def _features(self, x: Any) -> Any:
        """Features as plain data; warns once if no part of the payoff uses them."""
        if "features" not in self.reported and not FeatureReader(self.payoff):
            text = "features (x=) are not used: no part of the payoff has a context= or utility that reads them"
            self._report_once("features", text)
        self.reported.add("features")
        return plain_features(x)

    # --- many rounds at once
    @locked
    def run(
        self,
        forecasts: Any = None,
        outcomes: Any = (),
        *,
        experts: Mapping[str, Any] | None = None,
        x: Any = None,
        levels: ArrayLike | None = None,
        at: ArrayLike | None = None,
        detailed: bool = False,
    ) -> Any:
        """Recalibrate a whole history; each outcome is known before the next forecast.

        Parameters
        ----------
        forecasts
            Sequence of base forecasts as in `predict`; with `levels` an array with one row of quantiles per round.
        outcomes
            One outcome per round.
        experts
            Several such histories by name, None or rows of nan where one is missing.
        x
            Features, one entry per round.
        levels
            Levels of the columns of `forecasts`.
        at
            Levels of the result; by default `levels`, or 0.01, ..., 0.99.
        detailed
            Return the certificates too.

        Returns
        -------
        array or RunResult
            One row per round: quantiles at `at`; on finite spaces the probability of each cell; on `Binary` that of 1.
            If `detailed`, a `RunResult` with these as `rows`.

        Raises
        ------
        ValueError
            If rounds are pending, or lengths differ.

        Examples
        --------
        >>> import numpy as np, orcast as oc
        >>> recal = oc.Recalibrator(oc.Interval(0, 1))
        >>> recal.run([[0.4, 0.5, 0.6], [0.3, 0.5, 0.7]], [0.45, 0.7], levels=[0.1, 0.5, 0.9], at=[0.05, 0.95]).shape
        (2, 2)
        """
        if self.rounds.pending:
            raise ValueError(f"expected no pending rounds, got {len(self.rounds.pending)}: update or drop them first")
        columns: Any = slice(None)
        if at is None and levels is not None:
            wanted = np.atleast_1d(as_levels(levels))
            columns = np.argsort(np.argsort(wanted, axis=None, kind="stable"))  # in the order given
            wanted = np.sort(wanted, axis=None)
        else:
            wanted = np.atleast_1d(as_levels(PERCENTS if at is None else at))
            if wanted.ndim != 1 or (np.diff(wanted) <= 0.0).any():
                raise ValueError(f"expected increasing levels, got {at!r}")
        values = read_outcomes(self.space, outcomes, self.outside)
        rows, crossed = read_history(self.space, forecasts, experts, levels)
        count = len(next(iter(rows.values())))
        if count != len(values):
            raise ValueError(f"expected as many outcomes as forecasts, got {len(values)} and {count}")
        features = None if x is None else [self._features(each) for each in sequence_of(x, "features")]
        if features is not None and len(features) != len(values):
            raise ValueError(f"expected as many features as outcomes, got {len(features)} and {len(values)}")
        for each in rows.values():
            self._report_rows(each[~np.isnan(each[:, 0])], crossed)
        was = self.rounds, self._experts
        try:
            self._admit(tuple(rows))
            result, round_log, base = self.rounds.run(self._table(rows), features, values, np.array(wanted, order="C"))
        except BaseException:
            self.rounds, self._experts = was
            raise
        result = result[:, columns] if result.ndim == 2 else result
        if not detailed:
            return result
        field = _ledger.RoundLog
        return RunResult(
            result,
            round_log[:, field.MEAN].copy(),
            round_log[:, field.SD].copy(),
            round_log[:, field.HOLDS] > 0.0,
            round_log[:, field.PROMISED].copy(),
            round_log[:, field.MISCALIBRATION].copy(),
            round_log[:, field.EXCESS].copy(),
            base,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space}, {self.guarantee})"

    @locked
    def __getstate__(self) -> dict[str, Any]:
        # the parts of an engine are closures: it is rebuilt from the payoff and gets the arrays
        rounds, engine = self.rounds, self.engine
        memory = {name: array.copy() for name, array in engine.arrays().items()}
        monitors = [row.copy() for row in rounds.monitor_rows()]
        state = rounds.to_packed(), rounds.ids, memory, getattr(engine, "sizes", None), monitors
        own = {"rounds": state, "settled": SettledIds(self.settled.hashes()), "reported": set(self.reported)}
        return {name: value for name, value in self.__dict__.items() if name != "lock"} | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        packed, ids, memory, sizes, monitors = rest.pop("rounds")
        self.__dict__.update(rest)
        self.lock = StateLock()
        self.begin(self._experts, sizes)
        self.engine.restore(memory)
        self.rounds.from_packed(packed, ids)
        self.rounds.restore_monitors([row.copy() for row in monitors])

    # --- state
    @locked
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the state to a file, without pickle; a crash never leaves a partial file.

        Parameters
        ----------
        path
            Place of the file.
        overwrite
            Replace the file loaded or saved last even if another process saved it since.

        Raises
        ------
        ValueError
            If another process saved the file since.
        """
        from orcast import persistence

        data, place = persistence.encode(*persistence.state_of(self)), os.path.realpath(path)
        known = None if overwrite or self.file is None or self.file[0] != place else self.file[1]
        persistence.write_over(path, data, known)
        self.file = place, data[: persistence.START]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        payoff: Payoff | None = None,
        space: Space | None = None,
        oracle: Oracle | None = None,
        pool: Pool | None = None,
    ) -> Self:
        """Continue from a file.

        Parameters
        ----------
        path
            File written by `save`.
        payoff, space, oracle
            The saved ones, needed only if they have functions, which are not saved.
        pool
            Pool of the saved recalibrator, in its state then or later.

        Raises
        ------
        ValueError
            If the file is no valid state, or an argument differs from the saved one.
        """
        from orcast import persistence

        given: dict[str, Any] = {"payoff": payoff, "space": space, "oracle": oracle, "pool": pool}
        with persistence.reading(path, cls.kind) as (header, arrays, data):
            recal = persistence.recal_from(header, arrays, cls, **given)
            recal.file = os.path.realpath(path), data[: persistence.START]
        return recal


class Recalibrator(Forecaster):
    """Recalibrate the forecasts of any model on any sequence of outcomes.

    Parameters
    ----------
    space
        Outcome space; by default `Line()`, any number.
    payoff
        Payoffs to keep small; by default quantile and moment calibration and no regret in CRPS on quantities.
    oracle
        Method that chooses each forecast; by default `Committee()`, which usually makes forecasts more accurate too.
    memory
        Number of rounds of an exponentially discounted mean; by default all rounds count alike.
    outside
        "raise" refuses outcomes outside the space; "clip" clips them.
    max_pending
        Largest number of pending rounds; beyond it the oldest is dropped with a warning.
    pool
        `Pool` whose recalibrators share what they learn.
    seasons
        One or two seasons in rounds, such as (24, 168) for hourly forecasts; by default they are estimated.
    randomised
        Seed or generator of random draws, for which `guarantee.empirical` has bounds.
    mode
        "direct" publishes the recalibrated forecasts, "shadow" the base forecasts, "guarded" the base forecasts until
        an e-process says that the recalibrated ones are better (`guard`).

    Notes
    -----
    `predict` takes a base forecast, later `update` its outcome; `run` does both for a whole history. The guarantee is
    that of `Forecaster`:

        guarantee.miscalibration  <=  guarantee.promised    after every round (paper, section 4.2; docs/theory.md)

    Examples
    --------
    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 36_000))
    >>> p = recal.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400})
    >>> low, high = p.interval(0.9)
    >>> p.certificate.holds
    True
    >>> recal.update(9_240)
    """

    kind: ClassVar[str] = "Recalibrator"
    default_oracle: ClassVar[type[Oracle]] = Committee
    expert_required: ClassVar[bool] = True


def _checked_seasons(seasons: Any) -> tuple[int, ...]:
    if isinstance(seasons, (int, np.integer)) and not isinstance(seasons, bool):
        seasons = (seasons,)
    if not isinstance(seasons, (tuple, list)) or len(seasons) > 2:
        raise TypeError(f"expected at most two seasons, such as (24, 168), got {short(seasons)}")
    lags = [whole(lag, "rounds as a season", SHORTEST_SEASON, LONGEST_SEASON - 2) for lag in seasons]
    return tuple(dict.fromkeys(lags))
