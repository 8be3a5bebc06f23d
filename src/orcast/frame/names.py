"""Names of columns: one table of conventions, the columns of each model, and the names of the columns that are added.

==========  ====================================================================================================
kind        columns
==========  ====================================================================================================
quantiles   ``M-lo-90`` ``M-hi-90`` ``M-median`` ``M-ql0.1`` ``M-q-10`` (Nixtla), ``M_q0.100`` (darts), ``q0.1``
            ``q_0.1`` ``0.1`` ``quantile_0.1`` (AutoGluon, Chronos, GluonTS), ``Lo 80`` (R), ``q10`` ``p10`` ``M_q10``
            (percents, if the mirror image of each, ``q90``, is there too); ``yhat_lower`` ``yhat_upper`` (Prophet, 80%)
members     ``member_1`` ``member01`` ``M_member_1`` ``M-sample-1`` ``ens1`` ``draw_1``
normal      ``mean`` and ``sd``, ``M_mean`` and ``M_std``, ``M`` and ``M_std``, ``M-loc`` and ``M-scale``
labels      ``p_home`` ``p_draw`` ``p_away``, ``M_p_home`` ..., with outcomes that name a label
binary      ``p`` ``prob`` ``probability`` ``M_p`` ``M_prob``, with outcomes 0 and 1
point       ``M``, in a frame with ``unique_id``, ``ds`` and ``y``, or named by ``model=``
==========  ====================================================================================================

A plain column ``M`` beside ``M-lo-90`` is the median, unless ``M-median`` is there; else it is the mean.  If a model
has columns of several kinds, the first kind of the table is read.  If two readings are possible, an error names the
argument that settles it; ``model={"tree": {0.1: "lower", 0.9: "upper"}}`` names all columns of a model.

Added columns of a model M are named ``M_orcast`` and the endings that were found; ``orcast_`` goes before columns
without a model.  They are not read as forecasts, unless ``model`` names them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.validation import option, row_name, short

Label = Any  # pandas has columns named by numbers too

SERIES = ("unique_id", "series", "series_id", "item_id", "id")
TIME = ("ds", "time", "timestamp", "date", "datetime", "valid_time", "target_end_date", "target_date")
CUTOFF = (
    *("cutoff", "issued", "origin", "issue_time", "issue_date", "issued_at", "init_time", "reference_date"),
    *("reference_time", "forecast_reference_time", "origin_date", "origin_time", "run_time"),
)
HORIZON = ("horizon", "h", "step", "lead", "lead_time", "leadtime")
OUTCOME = (
    *("y", "actual", "actuals", "outcome", "observed", "obs", "observation", "target", "value", "y_true", "truth"),
    *("true_value", "oracle_value"),
)
# Names that are read if none of the usual ones is there.
ELSE = {
    "y": ("price", "actual_load", "load_actual", "actual_price"),
    "time": ("delivery", "delivery_start", "delivery_date"),
    "series": ("location", "station", "site"),
}
# Sets of columns that settle the roles if all of a set are there.
CONVENTIONS: tuple[dict[str, str], ...] = (
    {"series": "unique_id", "time": "ds", "y": "y"},
    {"series": "item_id", "time": "timestamp", "y": "target"},
    {"cutoff": "time", "time": "valid_time"},
    {"cutoff": "forecast_date", "time": "target_end_date"},
    {"time": "ds", "y": "y"},
)
ROLES = {"y": OUTCOME, "time": TIME, "cutoff": CUTOFF, "horizon": HORIZON, "series": SERIES}
# Columns of numbers that are no forecasts.
NEVER = {*SERIES, *TIME, *CUTOFF, *HORIZON, *OUTCOME, "index", "level_0", "unnamed: 0"}

# Kinds of forecasts as sentences have them; the first that a model has is read.
KINDS = {
    "quantiles": "quantiles",
    "members": "members",
    "normal": "a mean and a spread",
    "labels": "probabilities of labels",
    "binary": "a probability",
    "point": "a point forecast",
}
# Levels of a point forecast, if none are asked for.
POINT_LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
# Columns that are added for each model, beside the forecasts.
CERTIFICATE = ("holds", "promised", "miscalibration", "status")
OWN = "orcast"
# Prophet writes the ends of 80% intervals without their level.
PROPHET = {0.1: "yhat_lower", 0.5: "yhat", 0.9: "yhat_upper"}
# Models whose mean and spread are those of members beside them.
ENSEMBLES = ("ens", "ensemble", "member", "mem", "sample")

_MODEL = r"(?:(?P<model>.+)(?P<joint>[-_]))?"
_FIRST = r"(?:(?P<model>.+?)(?P<joint>[-_]))?"
_OWN = rf"(?:(?P<model>(?:.+_)?{OWN})(?P<joint>_))?"
_NUMBER = r"(?P<which>\d+(?:\.\d+)?)"
_PROBABILITY = r"(?:p|prob|proba|probability)"
# Endings of columns of forecasts: the kind, and the pattern.  "below" and "above" are the ends of an interval with its
# share in percent; "bound" is an end without a share.
ENDINGS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("below", rf"{_MODEL}(?P<lead>)lo[- .]{_NUMBER}"),
        ("above", rf"{_MODEL}(?P<lead>)hi[- .]{_NUMBER}"),
        ("median", rf"{_MODEL}(?P<lead>)(?P<which>median)"),
        ("fraction", rf"{_FIRST}(?P<lead>ql|q[-_]?|quantile[-_]?)(?P<which>0?\.\d+)"),
        ("fraction", rf"{_OWN}(?P<lead>)(?P<which>0?\.\d+)"),
        ("percent", rf"{_FIRST}(?P<lead>q[-_]?|p[-_]?)(?P<which>\d\d?(?:\.\d+)?)"),
        ("member", rf"{_MODEL}(?:member|sample|ensemble|ens|mem|draw)[-_]?(?P<which>\d+)"),
        ("mean", rf"{_MODEL}(?P<which>mean|mu|loc)"),
        ("sd", rf"{_MODEL}(?P<which>sd|std|scale|sigma|stddev|stdev)"),
        ("p", rf"{_MODEL}(?P<which>{_PROBABILITY})"),
        ("label", rf"{_MODEL}{_PROBABILITY}_(?P<which>.+)"),
        ("bound", rf"{_MODEL}(?P<which>(?:lower|upper|lo|hi|low|high)(?:[-_]?bound)?(?:[-_]?\d+)?)"),
    )
)
LEVEL_KINDS = ("below", "above", "median", "fraction", "percent")
GROUPS = ("level", "percent", "member", "mean", "sd", "p", "label", "bound")


# --- sentences


def plain(value: float) -> str:
    """Number without superfluous zeros: 0.1, 90, 97.5."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def listed(names: Iterable[Any], last: str = "and", *, quoted: bool = True) -> str:
    """Names in a sentence: 'a', 'b' and 'c'."""
    texts = [repr(name) if quoted else str(name) for name in names]
    if len(texts) > 8:
        texts = [*texts[:6], f"{len(texts) - 6} more"]
    return "none" if not texts else texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def of_model(model: str) -> str:
    """Model in a sentence."""
    return f" of model {model!r}" if model else ""


def of_series(key: Hashable) -> str:
    """Series in a sentence."""
    return "" if key is None else f" of series {key!r}"


def rows_text(rows: Sequence[Any] | NDArray[np.intp]) -> str:
    """Number of some rows, and the first of them: '7 rows: 0, 1, 2, 3, 4, ...'."""
    shown = row_name(*rows[:5])
    return shown if len(rows) == 1 else f"{len(rows)} {shown.replace(' ', ': ', 1)}{', ...' if len(rows) > 5 else ''}"


def _shown(labels: Sequence[Label]) -> str:
    return f"columns {listed(labels)}" if labels else "no columns"


def _twice(names: Sequence[Label]) -> Label:
    return next(name for i, name in enumerate(names) if name in names[:i])


# --- one name


class Level(NamedTuple):
    """A quantile in a name; ``kind`` is that of `ENDINGS`, ``lead`` the text between the model and the digits."""

    model: str
    level: float
    kind: str
    lead: str


def level_of(text: str) -> Level | None:
    """Read a name as a quantile; None if it is not one."""
    for kind, pattern in ENDINGS:
        if kind in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            digits = 0.0 if kind == "median" else float(m["which"])
            level = {
                "below": (100.0 - digits) / 200.0,
                "above": (100.0 + digits) / 200.0 if digits > 0.0 else 0.0,
                "median": 0.5,
                "fraction": digits,
            }.get(kind, digits / 100.0)
            fine = 0.0 < level < 1.0 and (level < 0.5 or kind != "below") and (level >= 0.01 or kind != "percent")
            return Level(m["model"] or "", round(level, 12), kind, (m["joint"] or "_") + m["lead"]) if fine else None
    return None


@lru_cache(maxsize=4096)
def readings(text: str) -> dict[str, tuple[str, Any]]:
    """Readings of a name by kind: the model, and the `Level`, the number of the member, or the text that was found."""
    found: dict[str, tuple[str, Any]] = {}
    if (level := level_of(text)) is not None:
        found["percent" if level.kind == "percent" else "level"] = level.model, level
    for kind, pattern in ENDINGS:
        if kind not in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            found[kind] = m["model"] or "", m["which"]
    return found


class Style(NamedTuple):
    """Endings for the levels of one model: ``interval`` as in ``-lo-90``, else ``lead`` and the level."""

    interval: bool = False
    lead: str = "_q"

    def write(self, level: float, others: Iterable[float]) -> str:
        """Ending of a quantile's name; an interval needs both ends among the levels."""
        if not self.interval:
            return f"{self.lead}{plain(level)}"
        if abs(level - 0.5) < 1e-9:
            return f"{self.lead}median"
        if not any(abs(1.0 - level - other) < 1e-9 for other in others):
            return f"{self.lead}ql{plain(level)}"
        return f"{self.lead}{'lo' if level < 0.5 else 'hi'}-{plain(100.0 * abs(1.0 - 2.0 * level))}"


@lru_cache(maxsize=4096)
def owner_of(text: str) -> str | None:
    """Beginning of a column that was added, which is `Form.base` of its model; None for other columns."""
    for m in re.finditer(rf"(?:^|(?<=_)){OWN}(?=$|[-_ ])", text) if OWN in text else ():
        ending = text[m.end() + 1 :]
        if not ending or ending in CERTIFICATE or "" in (model for model, _ in readings(ending).values()):
            return text[: m.end()]
    return None


# --- the columns of a model, and of a frame


class Output(NamedTuple):
    """A column that is added.

    ``what`` is "quantile", "mean", "sd", "member" or "probability"; ``level`` is that of a quantile, ``column`` the
    found column that it replaces and ``place`` its number (None for a level that was asked for).
    """

    name: str
    what: str
    level: float | None = None
    place: int | None = None
    column: Label | None = None


@dataclass(frozen=True, eq=False)
class Form:
    """The forecast columns of one model.

    ``columns`` are in the order of ``levels`` (increasing), of the members, of ``labels``, or mean and spread.
    ``mean`` is a column with the mean beside quantiles: no forecast of its own, but a new one is added.  ``assumed``
    is a sentence on what the names do not tell, ``problem`` an error to raise if the form is chosen.  ``ordered``:
    outcomes are numbers.  ``base`` is the beginning of the names of added columns, ``certificate`` has those of the
    columns beside the forecasts.
    """

    model: str
    kind: str
    columns: tuple[Label, ...]
    levels: NDArray[np.float64] | None = None
    labels: tuple[str, ...] | None = None
    mean: Label | None = None
    style: Style = field(default=Style(), repr=False)
    explicit: bool = field(default=False, repr=False)
    assumed: str | None = field(default=None, repr=False)
    problem: str | None = field(default=None, repr=False)
    ordered: bool = field(init=False, repr=False)
    base: str = field(init=False, repr=False)
    certificate: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        base = f"{self.model}_{OWN}" if self.model else OWN
        certificate = dict(zip(CERTIFICATE, map(f"{base}_".__add__, CERTIFICATE), strict=True))
        ordered = self.kind not in ("binary", "labels")
        self.__dict__.update({"ordered": ordered, "base": base, "certificate": certificate})

    def outputs(self, levels: ArrayLike | None = None) -> tuple[Output, ...]:
        """Added forecasts, in the form that was found, with quantiles at more levels if asked for.

        A point forecast gives its median, ``M_orcast``, and the intervals 80 and 95, or the levels asked for instead.
        """
        asked = [] if levels is None else _asked(levels)
        if not self.ordered and asked:
            raise ValueError(f"expected no levels beside {KINDS[self.kind]}, got {short(levels)}")
        asked = asked or list(POINT_LEVELS) if self.kind == "point" else asked
        what = {"quantiles": "quantile", "members": "member", "point": "quantile"}.get(self.kind, "probability")
        there = [0.5] if self.kind == "point" else [] if self.levels is None else self.levels.tolist()
        found = []
        if self.mean is not None:
            found.append(Output(self._named_after(self.mean, "mean"), "mean", None, None, self.mean))
        for i, column in enumerate(self.columns):
            level = there[i] if there else None
            what = ("mean", "sd")[i] if self.kind == "normal" else what
            found.append(Output(self._named_after(column, what, i), what, level, i, column))
        if asked:
            new = [level for level in asked if np.all(np.abs(np.subtract(there, level)) > 1e-9)]
            every = [*there, *new]
            found += [Output(self.base + self.style.write(level, every), "quantile", level) for level in new]
            found.sort(key=lambda out: out.level or -1.0)
        return tuple(found)

    def names(self, levels: ArrayLike | None = None) -> tuple[str, ...]:
        """Names of all added columns, the certificate's last."""
        return (*(out.name for out in self.outputs(levels)), *self.certificate.values())

    def _named_after(self, column: Label, what: str, place: int = 0) -> str:
        """Name of the column that replaces a found one: its ending behind the base, or else a plain ending."""
        if self.kind == "point":
            return self.base
        if self.explicit and self.labels:
            return f"{self.base}_p_{self.labels[place]}"
        if self.explicit:
            level = 0.0 if self.levels is None else float(self.levels[place])
            endings = {"quantile": f"q{plain(level)}", "member": f"member_{place + 1}", "probability": "p"}
            return f"{self.base}_{endings.get(what, what)}"
        text = str(column)
        return f"{self.base}{text[len(self.model) :]}" if self.model else f"{OWN}_{text}"


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """Roles of the columns of a frame; ``taken`` are all columns with a role, which are no forecasts.

    ``known`` is None unless it is named, ``y`` only in a frame without outcomes.  Forecasts count as issued ``back``
    nanoseconds before their cutoffs.  ``assumed`` are sentences on assumptions that the names alone do not tell.
    """

    series: tuple[Label, ...]
    time: Label | None
    cutoff: Label | None
    horizon: Label | None
    y: Label
    forms: tuple[Form, ...]
    known: Label | None = None
    assumed: tuple[str, ...] = ()
    back: int = 0
    taken: tuple[Label, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        each = [self.y, self.time, self.cutoff, self.horizon, self.known, *self.series]
        self.__dict__["taken"] = tuple(column for column in each if column is not None)

    def names(self, levels: ArrayLike | None = None) -> tuple[str, ...]:
        """Names of all added columns, model by model."""
        return tuple(name for form in self.forms for name in form.names(levels))

    def earlier(self, columns: Iterable[Label]) -> tuple[Label, ...]:
        """Columns that an earlier run added for these models; the new ones take their place."""
        if OWN not in " ".join(map(str, columns)):
            return ()
        bases = {form.base for form in self.forms}
        return tuple(column for column in columns if owner_of(str(column)) in bases)


def written_levels(form: Form, columns: Iterable[Label]) -> dict[float, Label]:
    """Added quantile columns of a form, by level, as far as a frame has them."""
    if not form.ordered:
        return {}
    usual = {out.name: out.level for out in form.outputs() if out.what == "quantile"}
    found: dict[float, Label] = {}
    for column in columns:
        text = str(column)
        if text in usual:
            found[usual[text] or 0.0] = column
        elif owner_of(text) == form.base and (level := level_of(text[len(form.base) + 1 :])) is not None:
            found[level.level] = column
    return dict(sorted(found.items()))


def _asked(levels: ArrayLike) -> list[float]:
    try:
        values = np.unique(np.asarray(levels, dtype=np.float64).round(10))
    except (TypeError, ValueError):
        raise TypeError(f"expected levels strictly between 0 and 1, got {short(levels)}") from None
    if not ((values > 0.0) & (values < 1.0)).all():
        raise ValueError(f"expected levels strictly between 0 and 1, got {short(levels)}")
    return [float(value) for value in values]


# --- finding


class Look(NamedTuple):
    """Contents of the columns, where a frame is at hand: of the outcomes, of one wrong value, of probabilities."""

    outcomes: Callable[[Label], str | None]
    wrong: Callable[[Label], str] = lambda _: "another type"
    chances: Callable[[Label], bool] = lambda _: False


def find(
    columns: Sequence[Label],
    *,
    numeric: Collection[Label],
    model: Any = None,
    pending: bool = False,
    outcomes: str | None = None,
    look: Look | None = None,
    **names: Any,
) -> ColumnLayout:
    """Find the columns of series, time, cutoff, horizon, outcome and of each model, from their names.

    ``names`` are those of y, series (or several), time, cutoff, horizon and known, as far as they are given.  ``model``
    is a name, several, or None for all that are found; or it has the columns of each model, see `_explicit`.
    ``pending`` accepts a frame without outcomes.  ``outcomes`` are "numbers", "0/1", "bool" or "labels".

    >>> columns = ["unique_id", "ds", "cutoff", "y", "ETS", "ETS-lo-80", "ETS-hi-80"]
    >>> layout = find(columns, numeric=columns[3:])
    >>> layout.forms[0].model, layout.forms[0].columns, layout.forms[0].levels.tolist()
    ('ETS', ('ETS-lo-80', 'ETS', 'ETS-hi-80'), [0.1, 0.5, 0.9])
    """
    roles = _roles(list(columns), names, pending)
    if look is None:
        look = Look(lambda y: outcomes or ("numbers or none" if y in numeric else None))
    candidates = _Candidates(list(columns), set(numeric), roles, look)
    if isinstance(model, Mapping):
        forms = [_explicit(str(name), parts, candidates) for name, parts in model.items()]
    elif model is not None:
        forms = _named(_several(model, "model"), candidates)
    else:
        forms = _all(candidates) or _points(candidates)
    if not forms:
        raise ValueError("expected at least one model, got none")
    assumed: list[str] = []
    for form in forms:
        _check(form, forms, candidates)
        assumed += [] if form.assumed is None else [form.assumed]
    return dataclasses.replace(roles, forms=tuple(forms), assumed=tuple(assumed))


def _roles(labels: list[Label], names: Mapping[str, Any], pending: bool) -> ColumnLayout:
    """Layout without forms."""
    texts = {str(label): label for label in labels}
    if len(texts) < len(labels):
        raise ValueError(f"expected columns with names of their own, got {_twice(list(map(str, labels)))!r} twice")
    for label in labels:
        if isinstance(label, tuple):
            raise ValueError(f"expected columns with plain names, got {label!r}")
    if unknown := set(names) - {*ROLES, "known"}:
        raise TypeError(f"expected names of y, series, time, cutoff, horizon and known, got {short(unknown)}")
    found: dict[str, Any] = {}
    taken: list[Label] = []
    for role, name in names.items():
        if role == "series" and name is not None:
            found[role] = [_column(each, labels, "series=") for each in _several(name, "series")]
            taken += found[role]
        elif name is not None:
            found[role] = _column(name, labels, f"{role}=")
            taken.append(found[role])
    convention = next((words for words in CONVENTIONS if texts.keys() >= set(words.values())), {})
    usual = set(convention.values())
    for role, words in ROLES.items():
        free = {text: label for text, label in texts.items() if label not in taken}
        if role in found:
            continue
        there = [convention[role]] if convention.get(role) in free else []
        there = there or [text for text in free if text.lower() in words and text not in usual]
        there = there or [text for text in free if text.lower() in ELSE.get(role, ())]
        if len(there) > 1:
            raise ValueError(
                f"expected one column for {'the outcome' if role == 'y' else role}, got {listed(there)}: "
                f"{role}= with a name settles it"
            )
        taken += [free[text] for text in there]
        found[role] = taken[-1] if there else None
    if found["y"] is None and not pending:
        raise ValueError(
            f"expected a column of outcomes named {listed(OUTCOME, 'or')}, "
            f"or {option('y')} with its name, or {option('target')} with a "
            f"table of outcomes, got {_shown(labels)}"
        )
    series = found.pop("series")
    several = series if isinstance(series, list) else [] if series is None else [series]
    layout = ColumnLayout(tuple(several), forms=(), **found)
    if len(set(layout.taken)) < len(layout.taken):
        raise ValueError(
            "expected a column for each of y, series, time, cutoff, horizon and known, "
            f"got {_twice(layout.taken)!r} for two"
        )
    return layout


def _column(name: Label, labels: list[Label], what: str) -> Label:
    """The column with a name that was given; a number may be given as text."""
    for label in labels:
        if str(label) == str(name):
            return label
    raise ValueError(f"expected {what} with the name of a column, got {name!r} in a frame with {_shown(labels)}")


def _several(names: Any, what: str) -> list[Label]:
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        found = list(names)
        if len(set(map(str, found))) < len(found):
            raise ValueError(f"expected {what}= with different names, got {short(found)}")
        return found
    if not isinstance(names, Hashable):
        raise TypeError(f"expected {what}= with a name or several, got {short(names)}")
    return [names]


class _Candidates:
    """Forms by model and kind, as far as the names of the free columns tell.

    ``doubtful`` are columns that look like forecasts but do not say enough, and the reason.
    """

    def __init__(self, labels: list[Label], numeric: set[Label], roles: ColumnLayout, look: Look) -> None:
        self.labels, self.numeric, self.roles, self.look = labels, numeric, roles, look
        self.outcomes = None if roles.y is None else look.outcomes(roles.y)
        self.free = {str(label): label for label in labels if label not in roles.taken}
        self.numbers = {text: label for text, label in self.free.items() if label in numeric}
        self.found: dict[str, dict[str, Form]] = {}
        self.doubtful: dict[str, str] = {}
        self.groups: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in GROUPS}
        for text in self.free:
            for kind, (model, which) in readings(text).items():
                if text in self.numbers or kind in ("level", "percent", "member"):
                    self.groups[kind].setdefault(model, {})[text] = which
        if self.numbers.keys() >= set(PROPHET.values()):
            self._read_prophet()
        for bounds in self.groups["bound"].values():
            self.doubtful |= dict.fromkeys(bounds, "ends of intervals without a level")
        for model, percents in self.groups["percent"].items():
            self._read_percents(model, percents)
        for model, levels in self.groups["level"].items():
            self._read_quantiles(model, levels)
        for model, members in self.groups["member"].items():
            if len(members) > 1:
                order = sorted(members.items(), key=lambda each: int(each[1]))
                self._add(model, "members", [text for text, _ in order])
        for model, spreads in self.groups["sd"].items():
            means = [*self.groups["mean"].get(model, ())] or [text for text in (model,) if text in self.numbers]
            problem = self._several_for(model, "mean", means) or self._several_for(model, "spread", [*spreads])
            if means:
                self._add(model, "normal", (means[0], next(iter(spreads))), problem=problem)
        for model, labels_ in self.groups["label"].items():
            if len(labels_) > 1:
                self._add(model, "labels", labels_, labels=tuple(labels_.values()))
        for model, chances in self.groups["p"].items():
            problem = self._several_for(model, "probability", [*chances])
            self._add(model, "binary", [*chances][:1], problem=problem)

    def _add(self, model: str, kind: str, texts: Iterable[str], **rest: Any) -> None:
        form = Form(model, kind, tuple(map(self.free.__getitem__, texts)), **rest)
        self.found.setdefault(model, {})[kind] = form

    @staticmethod
    def _several_for(model: str, what: str, texts: Sequence[str], key: str = "...") -> str | None:
        """Error if there are several columns for one thing."""
        if len(texts) < 2:
            return None
        return (
            f"expected one column for the {what}{of_model(model)}, got {listed(texts)}: "
            f"model={{{model!r}: {{{key}: {texts[0]!r}, ...}}}} settles it"
        )

    def _read_prophet(self) -> None:
        spelt = ", ".join(f"{plain(at)}: {text!r}" for at, text in PROPHET.items())
        assumed = (
            f"'yhat_lower' and 'yhat_upper' were read as the ends of the 80% interval, the default of Prophet: "
            f"model={{'yhat': {{{spelt}}}}} with other levels says otherwise"
        )
        self._add("yhat", "quantiles", PROPHET.values(), levels=np.array([*PROPHET]), assumed=assumed)

    def _read_percents(self, model: str, some: Mapping[str, Level]) -> None:
        """Read percents as levels if the mirror image of each is there too."""
        for lead in dict.fromkeys(level.lead for level in some.values()):
            alike = {text: level for text, level in some.items() if level.lead == lead}
            there = {level.level for level in alike.values()}
            if len(there) > 1 and (lead == "-q-" or there == {round(1.0 - level, 12) for level in there}):
                self.groups["level"].setdefault(model, {}).update(alike)
            else:
                self.doubtful |= dict.fromkeys(alike, "which may be percents or not")

    def _read_quantiles(self, model: str, some: Mapping[str, Level]) -> None:
        by_level: dict[float, list[str]] = {}
        leads: dict[str, str] = {}
        for text, level in some.items():
            by_level.setdefault(level.level, []).append(text)
            leads.setdefault(level.kind, level.lead)
        means = [*self.groups["mean"].get(model, ())]
        if model and model in self.numbers:
            if 0.5 not in by_level and leads.keys() & {"below", "above"}:
                by_level[0.5] = [model]
            else:
                means.append(model)
        if len(by_level) < 2:
            if "median" not in leads:
                self.doubtful |= dict.fromkeys(some, "where two quantiles or more are needed")
            return
        problem = None
        for at, texts in by_level.items():
            if len(texts) > 1:
                problem = self._several_for(model, f"{plain(at)} quantile", texts, plain(at))
        if model in self.free and model not in self.numbers:
            problem = f"expected numbers in column {model!r}, got {self.look.wrong(self.free[model])}"
        interval = leads.get("below", leads.get("above"))
        order = sorted(by_level)
        self._add(
            model,
            "quantiles",
            [by_level[at][0] for at in order],
            levels=np.array(order),
            mean=self.free[means[0]] if means else None,
            style=Style(interval is not None, interval or leads.get("fraction", "_q")),
            problem=problem,
        )

    def best(self, model: str) -> Form | None:
        """The first kind of forecasts that a model has and that the outcomes can be about."""
        forms = self.found.get(model, {})
        for kind in KINDS:
            if kind in forms and self.why_not(forms[kind]) is None:
                return forms[kind]
        return None

    def why_not(self, form: Form) -> str | None:
        """Error if the outcomes cannot be those of a form."""
        outcomes, y = self.outcomes, self.roles.y
        if form.ordered and outcomes in ("labels", "bool"):
            found = "true or false" if outcomes == "bool" else self.look.wrong(y)
            whose = f"{KINDS[form.kind]}{of_model(form.model)}"
            return f"expected numbers as outcomes in column {y!r} beside {whose}, got {found}"
        if form.kind == "binary" and outcomes in ("numbers", "labels"):
            other = self.look.wrong(y) if outcomes == "labels" else "other numbers"
            return (
                f"expected outcomes 0 or 1 beside the probability in {form.columns[0]!r}, got {other} in column {y!r}"
            )
        if form.labels and outcomes not in (None, "labels"):
            names = set(map(str.lower, form.labels))
            if names != {"true", "false"} and not all(map(str.isdecimal, names)):
                return f"expected outcomes that name a label ({listed(form.labels, 'or')}), got numbers in column {y!r}"
        return None

    def point(self, text: str) -> Form:
        """A plain column as a forecast."""
        kind = "binary" if self.outcomes == "bool" else "point"
        return Form(text, kind, (self.free[text],), style=Style(True, "-"))


def _all(candidates: _Candidates) -> list[Form]:
    """Every model of the frame, where none is named."""
    found: list[Form] = []
    for model, forms in candidates.found.items():
        best = candidates.best(model) if owner_of(model) != model else None
        found += [] if best is None else [best]
        if best not in (None, forms.get("binary")) and candidates.outcomes == "0/1":
            # a quantity that was 0 or 1 so far, or an event: both readings of one model are possible
            found += [forms["binary"]] if "binary" in forms else []
    if len(found) < 2:
        return found
    kinds = {form.kind for form in found}
    if "members" in kinds:
        # the mean and the spread of the members
        found = [form for form in found if form.kind != "normal" or form.model.lower() not in ENSEMBLES]
    if kinds & {"quantiles", "members"} and candidates.outcomes not in ("0/1", "bool", "labels"):
        found = [form for form in found if form.ordered]
    one_each = {{"members": "quantiles"}.get(form.kind, form.kind): form for form in reversed(found)}
    if len(one_each) > 1:
        texts = [f"{KINDS[form.kind]}{of_model(form.model)}" for form in reversed(one_each.values())]
        raise ValueError(
            f"expected forecasts of one kind, got {listed(texts, quoted=False)}: "
            f"{option('model')} with a name, such as model={found[0].model!r}, or with several, settles it"
        )
    return found


def _points(candidates: _Candidates) -> list[Form]:
    """Plain columns of numbers, where nothing better is there."""
    for model, forms in candidates.found.items():
        why = [candidates.why_not(form) for form in forms.values() if owner_of(model) != model]
        if any(why):
            raise ValueError(why[0])
    free = {text: label for text, label in candidates.free.items() if owner_of(text) is None}
    unsure = [text for text in candidates.doubtful if text in free]
    if unsure:
        example = f"0.05: {unsure[0]!r}, 0.95: {unsure[1] if len(unsure) > 1 else 'another'!r}"
        raise ValueError(
            f"expected columns of forecasts that tell by their names what they are, got {listed(unsure)}, "
            f"{candidates.doubtful[unsure[0]]}: model= with a name, or with levels as in "
            f"model={{'tree': {{{example}}}}}, settles it"
        )
    for text, label in free.items():
        if text not in candidates.numbers and readings(text).keys() & {"mean", "sd", "p", "label"}:
            raise ValueError(f"expected numbers in column {text!r}, got {candidates.look.wrong(label)}")
    names = [text for text in free if text in candidates.numbers and text.lower() not in NEVER]
    if {"unique_id", "ds"} <= set(map(str, candidates.labels)) and names:
        return [candidates.point(text) for text in names]
    asked = f"; model= with a name says which of {listed(names)} are forecasts" if names else ""
    raise ValueError(
        "expected columns of forecasts such as 'MODEL-lo-90' and 'MODEL-hi-90', 'q0.1' and 'q0.9', 'mean' and 'sd', "
        f"'member_1' and 'member_2', or 'p', got {_shown(candidates.labels)}{asked}"
    )


def _named(names: list[Label], candidates: _Candidates) -> list[Form]:
    """Models by the names that were given; all columns of probabilities may be named too."""
    forms: dict[Form, None] = {}
    events = [form for kinds in candidates.found.values() for form in kinds.values() if not form.ordered]
    for text in map(str, names):
        form = candidates.best(text) or next((form for form in events if text in map(str, form.columns)), None)
        if form is not None and form.model != text and not set(form.columns) <= set(names):
            raise ValueError(
                f"expected model={form.model!r} for {KINDS[form.kind]}{of_model(form.model)} in "
                f"{listed(form.columns)}, got one of these columns, {text!r}"
            )
        forms[form or _named_point(text, candidates)] = None
    return list(forms)


def _named_point(text: str, candidates: _Candidates) -> Form:
    if text in candidates.numbers:
        if candidates.outcomes == "0/1" and candidates.look.chances(candidates.free[text]):
            raise ValueError(
                f"expected model={{{text!r}: {{'p': {text!r}}}}} for probabilities, or model={{{text!r}: {text!r}}} "
                f"for a point forecast, got model={text!r} with numbers from 0 to 1 beside outcomes 0 and 1"
            )
        return candidates.point(text)
    if text in candidates.free:
        wrong = candidates.look.wrong(candidates.free[text])
        raise ValueError(f"expected numbers in the column of model {text!r}, got {wrong}")
    for form in candidates.found.get(text, {}).values():
        raise ValueError(candidates.why_not(form) or "")
    known = [model for model in candidates.found if owner_of(model) != model and candidates.best(model) is not None]
    there = f"a model of the frame, {listed(known)}," if known else "a model of the frame, which has none,"
    raise ValueError(f"expected {there} or a column of numbers as model=, got {text!r}")


def _explicit(model: str, parts: Any, candidates: _Candidates) -> Form:
    """A model with the names of its columns.

    Quantiles ``{0.1: "lower", 0.9: "upper"}`` (and "mean", if there is one), ``{"mean": "m", "sd": "s"}``, members
    ``["a", "b"]``, a point ``"column"``, ``{"p": "chance"}`` or ``{"p_home": "h", "p_away": "a"}``.
    """

    def form(kind: str, names: Iterable[Label], **rest: Any) -> Form:
        columns = [_column(name, candidates.labels, f"model={{{model!r}: ...}}") for name in names]
        return Form(model, kind, tuple(columns), explicit=True, **rest)

    if isinstance(parts, Mapping):
        keys = list(parts)
        if set(keys) == {"mean", "sd"}:
            return form("normal", (parts["mean"], parts["sd"]))
        if keys == ["p"]:
            return form("binary", parts.values())
        if len(keys) > 1 and all(isinstance(key, str) and key.startswith("p_") for key in keys):
            return form("labels", parts.values(), labels=tuple(key[2:] for key in keys))
        order = sorted(key for key in keys if isinstance(key, float | np.floating) and 0.0 < float(key) < 1.0)
        if len(order) > 1 and set(keys) - set(order) <= {"mean"}:
            levels = np.array(order, dtype=np.float64)
            return form("quantiles", (parts[key] for key in order), levels=levels, mean=parts.get("mean"))
    elif isinstance(parts, str) or not isinstance(parts, Iterable):
        return form("binary" if candidates.outcomes == "bool" else "point", [parts], style=Style(True, "-"))
    elif len(members := list(parts)) > 1:
        return form("members", members)
    raise ValueError(
        "expected the columns of a model as {level: column, level: column}, {'mean': column, 'sd': column}, a list of "
        "members, one column for a point, {'p': column}, or {'p_LABEL': column, ...}, "
        f"got {short(parts)} for model {model!r}"
    )


def _check(form: Form, forms: list[Form], candidates: _Candidates) -> None:
    """Chosen columns must hold numbers, fit the outcomes, and leave room for the added ones."""
    model = form.model
    if problem := form.problem or candidates.why_not(form):
        raise ValueError(problem)
    if len(forms) > 1 and any(other is not form and other.model == model for other in forms):
        raise ValueError(f"expected models with names of their own, got {model!r} twice")
    if len(set(form.columns)) < len(form.columns):
        raise ValueError(f"expected different columns{of_model(model)}, got {_twice(form.columns)!r} twice")
    for column in form.columns if form.mean is None else (*form.columns, form.mean):
        if column in candidates.roles.taken:
            found = f"{column!r}, which is y, series or time"
            raise ValueError(f"expected a column of forecasts{of_model(model)}, got {found}")
        if column not in candidates.numeric:
            found = candidates.look.wrong(column)
            raise ValueError(f"expected numbers in column {column!r}{of_model(model)}, got {found}")
        owner = owner_of(str(column))
        if owner is not None and owner in [other.base for other in forms]:
            raise ValueError(
                f"expected a model or its recalibrated form, got both: column {column!r} is one of {owner!r}"
            )
