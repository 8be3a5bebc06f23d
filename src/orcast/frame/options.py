"""Options of a frame: as users give them, and as a state keeps them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from orcast.frame.bounds import plain_bound
from orcast.frame.names import asked_levels
from orcast.frame.times import checked_timing
from orcast.inputs import plain_payoff
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence import as_saved
from orcast.validation import short


class FrameOptions(NamedTuple):
    """Options beside the columns, as users give them."""

    low: Any = None
    high: Any = None
    levels: Any = None
    payoff: Any = None  # plain data in a state
    outside: str = "report"
    lag: Any = None
    issued_every: Any = None
    pool: bool = True

    def checked(self) -> FrameOptions:
        """These options in plain form, or an error."""
        if self.outside not in ("report", "clip"):
            raise ValueError(f"expected outside='report' or 'clip', got {self.outside!r}")
        if self.payoff is not None and not isinstance(self.payoff, Payoff):
            raise TypeError(f"expected a payoff such as QuantileCalibration(), got {short(self.payoff)}")
        levels = None if self.levels is None else asked_levels(self.levels)
        if not isinstance(self.pool, (bool, np.bool_)):
            raise TypeError(f"expected pool=True or False, got {short(self.pool)}")
        lag, every = checked_timing(self.lag, self.issued_every)
        return self._replace(levels=levels, lag=lag, issued_every=every, pool=bool(self.pool))

    def continued(self, before: FrameOptions) -> FrameOptions:
        """These options, completed by those that a state began with; others than those are refused."""
        usual = FrameOptions()
        for name in ("levels", "pool", "lag", "issued_every"):
            now, then = getattr(self, name), getattr(before, name)
            if now not in (getattr(usual, name), then):
                raise ValueError(f"expected {name}= as in the state, {then!r}, got {short(now)}")
        if before.payoff is None and self.payoff is not None:
            raise ValueError(f"expected the default payoff, as in the state, got {short(self.payoff)}")
        for name in ("low", "high"):
            now, then = plain_bound(getattr(self, name)), getattr(before, name)
            if (self.low, self.high) != (None, None) and now != then:
                raise ValueError(f"expected {name}= as in the state, {then!r}, got {short(now)}")
        payoff = self.payoff
        if before.payoff is not None:
            payoff = as_saved(payoff, before.payoff, payoff_from_plain, "payoff")
        return before._replace(payoff=payoff, outside=self.outside)

    def kept(self) -> FrameOptions:
        """These options as a state keeps them: plain data."""
        payoff = None if self.payoff is None else plain_payoff(self.payoff)
        return self._replace(low=plain_bound(self.low), high=plain_bound(self.high), payoff=payoff, outside="report")

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> FrameOptions:
        """Options of a state from a file, or a reason why they are none; a payoff and bounds are read when used."""
        self = cls(**plain)
        return self._replace(payoff=None).checked()._replace(payoff=self.payoff)


class FrameFacts(NamedTuple):
    """Properties of a frame that all frames of one state share."""

    times: str  # kind of the times
    cutoffs: bool  # False if each outcome is known before the next forecast
    empirical: bool  # horizons are counted from the cutoff on
    known: bool  # a column says when outcomes were known
    events: list[str] | None = None  # columns that tell events of one time apart, None without such events

    def check(self, now: FrameFacts) -> None:
        """Refuse a frame that is read in another way than the first one."""
        texts = ("times", "cutoffs", "horizons counted from cutoffs", "column known=")
        for what, *pair in zip(texts, self, now, strict=False):
            if pair[0] != pair[1]:
                then, got = (each if isinstance(each, str) else f"{'' if each else 'no '}{what}" for each in pair)
                raise ValueError(f"expected {what} as the state has them, {then}, got {got}")

    @classmethod
    def from_plain(cls, plain: list[Any]) -> FrameFacts:
        """Facts of a file, or a reason why they are none."""
        *facts, events = plain
        names = [] if events is None else events
        if [type(each) for each in (*facts, *names)] != [str, bool, bool, bool] + [str] * len(names):
            raise TypeError(f"{short(plain)} do not describe a frame")
        return cls(*plain)
