"""Options of a frame: as users give them, and as a state keeps them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

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
    levels: Any = None
    payoff: Any = None  # plain data in a state
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

    def continued(self, before: FrameOptions, bounds: Mapping[Hashable, tuple[float, float]]) -> FrameOptions:
        """These options, completed by those that a state began with; others than those are refused."""
        usual = FrameOptions()
        for name in ("levels", "pool", "randomised"):
            now, then = getattr(self, name), getattr(before, name)
            if now not in (getattr(usual, name), then):
                raise ValueError(f"expected {name}= as the state began with it, {then!r}, got {short(now)}")
        if before.payoff is None and self.payoff is not None:
            raise ValueError(f"expected payoff= as the state began with it, the default, got {short(self.payoff)}")
        payoff, low, high = self.payoff, self.low, self.high
        if before.payoff is not None:
            payoff = as_saved(payoff, before.payoff, payoff_from_plain, "payoff")
        if low is None and high is None:
            low, high = (
                {key: pair[side] for key, pair in bounds.items()} if given == BY_SERIES else given
                for side, given in enumerate((before.low, before.high))
            )
        timing = self.timing.completed(*before.timing)
        return before._replace(low=low, high=high, payoff=payoff, outside=self.outside, timing=timing)

    def kept(self) -> FrameOptions:
        """These options as a state keeps them: plain data."""
        payoff = None if self.payoff is None else plain_payoff(self.payoff)
        return self._replace(low=_plain_bound(self.low), high=_plain_bound(self.high), payoff=payoff, outside="report")

    @classmethod
    def from_plain(cls, plain: dict[str, Any], kind: str) -> FrameOptions:
        """Options of a state from a file, or a reason why they are none; ``kind`` is that of its times."""
        self = cls(**{**plain, "timing": Timing(*plain["timing"])})
        payoff = self.payoff
        if payoff is not None:
            try:
                payoff_from_plain(payoff)
            except ValueError as reason:
                if " payoff= " not in str(reason):  # it has functions, and is given again
                    raise
        for side in (self.low, self.high):
            if not (side is None or isinstance(side, str) or side == BY_SERIES):
                single(side, "bound")
        if self.timing.lag is not None:
            stamps_of(self.timing.lag, kind, "lag")
        checked = self._replace(payoff=None, timing=self.timing._replace(lag=None)).checked()
        if checked.levels != self.levels or not all(0.0 < level < 1.0 for level in checked.levels or ()):
            raise ValueError(f"{short(self.levels)} are no levels")
        return checked._replace(payoff=payoff, timing=self.timing)


@dataclass
class StateOptions:
    """Options that a state began with; all later frames have the same.

    ``kind`` is that of the times, ``at_once`` whether each outcome is known before the next forecast, ``ranked``
    whether horizons are counted from the cutoff on, ``known`` whether a column says when outcomes were known,
    ``by_row`` whether bounds are those of rows, ``events`` columns that tell events of one time apart (none: their
    forecasts do), None where a series has one row for each time.
    """

    kind: str
    at_once: bool
    ranked: bool
    known: bool
    by_row: bool
    events: list[str] | None
    given: FrameOptions

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "given": self.given._asdict()}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> StateOptions:
        """Options of a file, or a reason why they are none."""
        self = cls(**{**plain, "given": FrameOptions.from_plain(plain["given"], plain["kind"])})
        flags = (self.at_once, self.ranked, self.known, self.by_row)
        names = [] if self.events is None else self.events
        if not all(isinstance(name, str) for name in (self.kind, *names)) or set(map(type, flags)) != {bool}:
            raise TypeError(f"{short(plain)} are no options")
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
