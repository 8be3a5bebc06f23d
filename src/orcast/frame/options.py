"""Options of a frame: as users give them, and as a state keeps them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orcast.coins import seed_of
from orcast.features import plain_payoff
from orcast.frame.times import Timing, stamps_of
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence import as_saved
from orcast.spaces.base import single
from orcast.validation import short

# Stands for bounds that were given for each series.
BY_SERIES = {"by": "series"}


class FrameOptions(NamedTuple):
    """Options beside the columns, as users give them."""

    low: Any = None
    high: Any = None
    levels: ArrayLike | None = None
    payoff: Payoff | None = None
    outside: str = "report"
    timing: Timing = Timing()
    pool: Any = True
    randomised: Any = None

    def checked(self) -> FrameOptions:
        """These options in plain form, or one clear sentence on what is wrong with them."""
        if self.outside not in ("report", "clip"):
            raise ValueError(f"expected outside='report' or 'clip', got {self.outside!r}")
        if self.payoff is not None and not isinstance(self.payoff, Payoff):
            raise TypeError(f"expected a payoff such as QuantileCalibration(), got {short(self.payoff)}")
        try:
            levels = None if self.levels is None else np.unique(np.asarray(self.levels, dtype=np.float64)).tolist()
        except (TypeError, ValueError):
            raise TypeError(f"expected levels strictly between 0 and 1, got {short(self.levels)}") from None
        seed, pool = seed_of(self.randomised), _checked_pool(self.pool)
        return self._replace(levels=levels, timing=self.timing.checked(), pool=pool, randomised=seed)

    def continued(self, before: StateOptions, bounds: Mapping[Hashable, tuple[float, float]]) -> FrameOptions:
        """These options, completed by those that a state began with; others than those are refused."""
        pool = tuple(before.pool) if isinstance(before.pool, list) else before.pool
        usual = FrameOptions()
        for name, then in (("levels", before.levels), ("pool", pool), ("randomised", before.randomised)):
            now = getattr(self, name)
            if now not in (getattr(usual, name), then):
                raise ValueError(f"expected {name}= as the state began with it, {then!r}, got {short(now)}")
        if before.payoff is None and self.payoff is not None:
            raise ValueError(f"expected payoff= as the state began with it, the default, got {short(self.payoff)}")
        payoff = self.payoff
        if before.payoff is not None:
            payoff = as_saved(payoff, before.payoff, payoff_from_plain, "payoff")
        low, high = self.low, self.high
        if low is None and high is None:
            low, high = (
                {key: pair[side] for key, pair in bounds.items()} if given == BY_SERIES else given
                for side, given in enumerate((before.low, before.high))
            )
        return self._replace(
            low=low,
            high=high,
            levels=before.levels,
            payoff=payoff,
            timing=self.timing.completed(before.lag, before.issued_every, before.nowcast),
            pool=pool,
            randomised=before.randomised,
        )


@dataclass
class StateOptions:
    """Options that a state began with.

    ``low`` and ``high`` are as they were given, or `BY_SERIES`; ``kind`` is that of the times, ``at_once`` whether each
    outcome is known before the next forecast, ``ranked`` whether horizons are counted from the cutoff on, ``known``
    whether a column says when outcomes were known, ``by_row`` whether bounds are those of rows,
    ``events`` whether a series has several events at one time.
    """

    kind: str
    at_once: bool
    ranked: bool
    known: bool
    by_row: bool
    events: bool
    low: Any
    high: Any
    levels: list[float] | None
    payoff: dict[str, Any] | None
    lag: Any
    issued_every: int | str | None
    nowcast: bool
    pool: bool | list[str]
    randomised: int | None

    @classmethod
    def of(cls, given: FrameOptions, **times: Any) -> StateOptions:
        """Options of a new state; the first six are named."""
        timing, levels, pool = given.timing, given.levels, given.pool
        return cls(
            **times,
            low=_plain_bound(given.low),
            high=_plain_bound(given.high),
            levels=levels,  # type: ignore[arg-type]
            payoff=None if given.payoff is None else plain_payoff(given.payoff),
            lag=timing.lag,
            issued_every=timing.issued_every,
            nowcast=timing.nowcast,
            pool=list(pool) if isinstance(pool, tuple) else pool,
            randomised=given.randomised,
        )

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> StateOptions:
        """Options of a file, or a reason why they are none."""
        self = cls(**plain)
        flags = (self.at_once, self.ranked, self.known, self.by_row, self.events, self.nowcast)
        if not isinstance(self.kind, str) or not all(isinstance(flag, bool) for flag in flags):
            raise TypeError(f"{short(plain)} are no options")
        for side in (self.low, self.high):
            if not (side is None or isinstance(side, str) or side == BY_SERIES):
                single(side, "bound")
        if self.lag is not None:
            stamps_of(self.lag, self.kind, "lag")
        timing = Timing(None, self.issued_every)
        checked = FrameOptions(levels=self.levels, timing=timing, pool=self.pool, randomised=self.randomised).checked()
        if checked.levels != self.levels or not all(0.0 < level < 1.0 for level in self.levels or ()):
            raise ValueError(f"{short(self.levels)} are no levels")
        if self.payoff is not None:
            try:
                payoff_from_plain(self.payoff)
            except ValueError as reason:
                if " payoff= " not in str(reason):  # it has functions, and is given again
                    raise
        return self


def _plain_bound(side: Any) -> Any:
    if side is None or isinstance(side, str):
        return side
    return BY_SERIES if isinstance(side, Mapping) or hasattr(side, "to_dict") else float(side)


def _checked_pool(pool: Any) -> bool | tuple[str, ...]:
    """Check which series are pooled: all (True), none (False), or those that agree in columns."""
    if isinstance(pool, (bool, np.bool_)):
        return bool(pool)
    columns = (pool,) if isinstance(pool, str) else tuple(pool) if isinstance(pool, (list, tuple)) else ()
    if not columns or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"expected pool=True, False, or the names of columns, got {short(pool)}")
    return columns
