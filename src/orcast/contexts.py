"""Contexts: groups of rounds, known before the outcome, on which a payoff is kept small.

A context is a vector c, usually the indicator of the group of a round; a payoff with a context adds c (x) payoff to the
ledger, so it is kept small on each group separately (multicalibration for a finite set).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.limits import LIMITS
from orcast.serialise import features_from_json, features_to_json
from orcast.spaces.base import whole
from orcast.validation import number, short, vector

Array = NDArray[np.float64]

# Default softening of an edge, as a share of the narrowest bin.
SOFT = 0.1


class ContextInputs(NamedTuple):
    """Information on a round that is known before its outcome."""

    features: Any = None
    level: float = math.nan  # the expert's median, or its probability
    spread: float = math.nan  # from its 10% to its 90% quantile
    last_error: float = math.nan  # the last outcome minus the median that was forecast


class Context:
    """Vector known before the outcome; `a * b` has a group for each pair, `a | b` the groups of both."""

    name: str
    labels: tuple[str, ...]
    bound: float = 1.0  # on the squared norm
    signed: bool = False  # True if an entry may be negative
    disjoint: bool = False  # True if no round is in two groups
    options: tuple[str, ...] = ()  # names of the attributes in the plain form

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    def __call__(self, known: ContextInputs) -> Array:
        """Vector of a round."""
        raise AttributeError(f"{type(self).__name__} has no vector")

    def to_plain(self) -> dict[str, Any]:
        """Plain data; functions are omitted and must be passed again."""
        plain: dict[str, Any] = {"kind": type(self).__name__}
        for name in self.options:
            value = getattr(self, name)
            plain[name] = value.to_plain() if isinstance(value, Context) else value
        return plain

    def __mul__(self, other: Context) -> Context:
        return Product(self, other) if isinstance(other, Context) else NotImplemented

    def __or__(self, other: Context) -> Context:
        return Union(self, other) if isinstance(other, Context) else NotImplemented

    def __repr__(self) -> str:
        return f"by {self.name}: {self.size} groups"


class Everyone(Context):
    """Context of a payoff without groups."""

    name = "all"
    labels = ("all",)

    def __call__(self, known: ContextInputs) -> Array:
        return np.ones(1)

    def __reduce__(self) -> str:
        # a singleton, also when copied
        return "EVERYONE"


class Values(Context):
    """Group for each value of a feature."""

    disjoint = True
    options = ("key", "other")

    def __init__(self, key: str, values: Iterable[Hashable], other: bool = False) -> None:
        _check_key(key)
        try:
            known = [_plain(value) for value in limits.taken("groups", values)]
            self._index = {value: i for i, value in enumerate(known)}
        except TypeError:
            raise TypeError(f"expected a sequence of hashable values, got {short(values)}") from None
        if len(self._index) < len(known) or not known:
            raise ValueError(f"expected one or more different values, got {short(known)}")
        self.key, self.values, self.other = key, tuple(known), bool(other)
        self.name = key
        self.labels = tuple(f"{key}={v}" for v in known) + ((f"{key}: other",) if other else ())

    def __call__(self, known: ContextInputs) -> Array:
        value = _plain(_feature(known, self.key))
        c = np.zeros(len(self.labels))
        try:
            at = self._index.get(value)
        except TypeError:
            at = None
        if at is None:
            if not self.other:
                raise ValueError(
                    f"expected one of the values {short(list(self.values))} of {self.key!r}, got {short(value)}: "
                    "other=True adds a group for other values"
                )
            at = len(self.values)
        c[at] = 1.0
        return c

    def to_plain(self) -> dict[str, Any]:
        return {**super().to_plain(), "values": [features_to_json(value) for value in self.values]}


class Bins(Context):
    """Group for each bin of a number: a feature, or the expert's level or spread.

    Edges are soft: near an edge a round belongs to both bins, in shares that sum to one.
    """

    options = ("key", "edges", "source", "soft")

    def __init__(self, key: str, edges: Iterable[float], source: str = "feature", soft: float | None = None) -> None:
        _check_key(key)
        if source not in ("feature", "level", "spread"):
            raise ValueError(f"expected bins of a feature, or of the expert's level or spread, got {short(source)}")
        try:
            e = np.array([float(edge) for edge in limits.taken("groups", edges)])
        except (TypeError, ValueError, OverflowError) as reason:
            if limits.MORE in str(reason):
                raise
            raise TypeError(f"expected numbers as edges, got {short(edges)}") from None
        if e.size == 0 or not np.isfinite(e).all() or (np.diff(e) <= 0.0).any():
            raise ValueError(f"expected one or more finite, increasing edges, got {short(e.tolist())}")
        narrowest = float(np.diff(e).min()) if e.size > 1 else math.inf
        if soft is None:
            soft = SOFT * narrowest if e.size > 1 else 0.0
        self.key, self.edges, self.source = key, e.tolist(), source
        self.soft = number(soft, "soft (width of a softened edge)", 0.0, narrowest)
        if self.soft < 1e-100:
            self.soft = 0.0
        self.name, self.disjoint = key, self.soft == 0.0
        ends = ["-inf", *(f"{edge:g}" for edge in e), "inf"]
        self.labels = tuple(f"{key} in ({a}, {b}]" for a, b in itertools.pairwise(ends))

    def __call__(self, known: ContextInputs) -> Array:
        if self.source == "feature":
            value = number(_feature(known, self.key), f"feature {self.key!r}")
        else:
            value = known.level if self.source == "level" else known.spread
            if math.isnan(value):
                raise ValueError(f"expected an expert with a numeric {self.source}, got none")
        if self.soft > 0.0:
            above = np.clip((value - np.array(self.edges)) / self.soft + 0.5, 0.0, 1.0)
        else:
            above = (value > np.array(self.edges)).astype(np.float64)
        c: Array = -np.diff(np.concatenate(([1.0], above, [0.0])))
        return c


class LastError(Context):
    """Two groups: after an outcome above the forecast's median (or probability), and after one at or below it.

    Before the first outcome a round belongs to neither.
    """

    name = "last error"
    disjoint = True
    labels = ("last error > 0", "last error <= 0")

    def __call__(self, known: ContextInputs) -> Array:
        if math.isnan(known.last_error):
            return np.zeros(2)
        above = float(known.last_error > 0.0)
        return np.array([above, 1.0 - above])


class FunctionOf(Context):
    """Vector-valued function of the features."""

    options = ("size", "bound", "name")

    def __init__(self, function: Callable[[Any], Any], size: int, bound: float = 1.0) -> None:
        size = whole(size, "numbers as size=, the length of the vector", 1, LIMITS.groups)
        self.function = function
        self.bound = number(bound, "bound", 1e-12, 1e12)
        self.signed = True
        self.name = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "function")
        self.labels = tuple(f"{self.name}[{i}]" for i in range(size))

    def __call__(self, known: ContextInputs) -> Array:
        c = vector(self.function, known.features, what="context")
        if c.shape != (self.size,):
            raise ValueError(f"expected {self.size} numbers from the context, got {c.size}")
        square = float(c @ c)
        if square > self.bound * (1.0 + 1e-9):
            raise ValueError(f"expected a context with a squared norm of at most bound={self.bound:g}, got {square:g}")
        return c


class _Pair(Context):
    """Two contexts."""

    options = ("first", "second")

    def __init__(self, first: Context, second: Context) -> None:
        self.first, self.second = first, second
        self.signed = first.signed or second.signed


class Product(_Pair):
    """Group for each pair of groups."""

    def __init__(self, first: Context, second: Context) -> None:
        super().__init__(first, second)
        limits.check("groups", first.size * second.size)
        self.name = f"{first.name} and {second.name}"
        self.labels = tuple(f"{a}, {b}" for a in first.labels for b in second.labels)
        self.bound = first.bound * second.bound
        self.disjoint = first.disjoint and second.disjoint

    def __call__(self, known: ContextInputs) -> Array:
        return np.outer(self.first(known), self.second(known)).ravel()


class Union(_Pair):
    """Groups of both contexts, which may overlap."""

    def __init__(self, first: Context, second: Context) -> None:
        super().__init__(first, second)
        limits.check("groups", first.size + second.size)
        self.name = f"{first.name} or {second.name}"
        self.labels = first.labels + second.labels
        self.bound = first.bound + second.bound

    def __call__(self, known: ContextInputs) -> Array:
        return np.concatenate((self.first(known), self.second(known)))


def by(
    key: str | Callable[[Any], Any],
    *,
    values: Iterable[Hashable] | None = None,
    edges: Iterable[float] | None = None,
    size: int | None = None,
    other: bool = False,
    soft: float | None = None,
    bound: float = 1.0,
) -> Context:
    """Context of a payoff: groups by a value, a bin, or any function of the features.

    Parameters
    ----------
    key
        Name of the feature, or a function of the features that returns a vector of length `size`.
    values
        Values of the feature, one group each.
    edges
        Increasing edges of the bins (-inf, e1], (e1, e2], ..., one group each.
    size
        Length of the vector of a function.
    other
        True adds a group for all other values; by default they raise.
    soft
        Width over which an edge is softened; by default a tenth of the narrowest bin.
    bound
        Bound on the squared norm of a function; 1 by default.

    Returns
    -------
    Context
        `a * b` has a group for each pair of groups, `a | b` the groups of both.

    Raises
    ------
    ValueError
        If values or edges are not distinct; in a round, if the feature is missing or unknown.

    Examples
    --------
    >>> context = by("hour", values=range(24)) | by("wind", edges=[5, 10])
    >>> context.size, context(ContextInputs({"hour": 3, "wind": 7.0})).nonzero()[0].tolist()
    (27, [3, 25])
    """
    if callable(key):
        if size is None or values is not None or edges is not None:
            raise TypeError("expected by(function, size=...), got a function with other options")
        return FunctionOf(key, size, bound)
    if not isinstance(key, str):
        raise TypeError(f"expected the name of a feature or a function of the features, got {short(key)}")
    if (values is None) == (edges is None) or size is not None:
        raise TypeError(f"expected by({key!r}, values=...) or by({key!r}, edges=...), got neither or both")
    if edges is not None:
        if other:
            raise TypeError("expected other= only with values=, got it with edges=")
        return Bins(key, edges, soft=soft)
    return Values(key, () if values is None else values, other)


def by_expert(what: str, *, edges: Iterable[float], soft: float | None = None) -> Context:
    """Groups by the expert's level or spread.

    Parameters
    ----------
    what
        "level", its median or probability, or "spread", from its 10% to its 90% quantile.
    edges
        Increasing edges of the bins.
    soft
        Width over which an edge is softened; by default a tenth of the narrowest bin.

    Examples
    --------
    >>> by_expert("spread", edges=[1.0]).labels
    ('spread in (-inf, 1]', 'spread in (1, inf]')
    """
    if what not in ("level", "spread"):
        raise ValueError(f"expected 'level' or 'spread', got {short(what)}")
    return Bins(what, edges, source=what, soft=soft)


def by_last_error() -> Context:
    """Groups by the sign of the last error, against dependence between successive errors.

    >>> by_last_error()(ContextInputs(last_error=2.0)).tolist()
    [1.0, 0.0]
    """
    return LastError()


EVERYONE = Everyone()


def as_context(context: Context | None) -> Context:
    """Return the context, or the one of all rounds for None."""
    if context is None:
        return EVERYONE
    if not isinstance(context, Context):
        raise TypeError(f"expected a context such as by('hour', values=range(24)), got {short(context)}")
    return context


_READERS: dict[str, Callable[..., Context]] = {
    kind.__name__: kind for kind in (Values, Bins, LastError, Product, Union)
}


def context_from_plain(data: Mapping[str, Any]) -> Context:
    """Rebuild a context without functions from its plain form."""
    options = dict(data)
    kind = options.pop("kind", None)
    if kind == "Everyone":
        return EVERYONE
    if kind in ("Product", "Union"):
        options = {name: context_from_plain(part) for name, part in options.items()}
    if kind == "Values":
        options["values"] = map(features_from_json, options["values"])
    if kind in _READERS:
        return _READERS[kind](**options)
    raise ValueError(f"expected payoff= for a context of the kind {kind!r}, whose function is not saved, got none")


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"expected the name of a feature, got {short(key)}")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _feature(known: ContextInputs, key: str) -> Any:
    if not isinstance(known.features, Mapping):
        raise ValueError(f"expected the feature {key!r} in x=, got {short(known.features)}")
    try:
        return known.features[key]
    except KeyError:
        raise ValueError(f"expected the feature {key!r} in x=, got {short(sorted(map(str, known.features)))}") from None
