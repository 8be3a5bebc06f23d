"""Names of columns: conventions, the columns of each model, and the names of the columns that are added.

The conventions are listed in docs/howto/frames.md.  A plain column ``M`` beside ``M-lo-90`` is the median, unless
``M-median`` is there; else it is the mean.  If a model has columns of several kinds, the first of `KINDS` is read.
Added columns are named ``M_orcast`` and the endings that were found, or ``orcast_`` and the name; they are not read as
forecasts, unless ``model`` names them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.validation import row_name, short

Label = Any  # pandas has columns named by numbers too

SERIES = ("unique_id", "series", "series_id", "item_id", "id", "location")
TIME = ("ds", "time", "timestamp", "date", "datetime", "valid_time", "target_end_date", "target_date")
CUTOFF = ("cutoff", "issued", "origin", "issue_time", "init_time", "reference_date", "origin_date", "run_time")
HORIZON = ("horizon", "h", "step", "lead", "lead_time")
OUTCOME = ("y", "actual", "observed", "obs", "observation", "target", "value", "y_true", "truth", "oracle_value")
# Sets of columns that settle the roles if all of a set are there.
CONVENTIONS: tuple[dict[str, str], ...] = (
    {"series": "unique_id", "time": "ds", "y": "y"},
    {"series": "item_id", "time": "timestamp", "y": "target"},
    {"cutoff": "time", "time": "valid_time"},
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
ALARMS = ("alarm", "base_alarm")
OWN = "orcast"

_MODEL = r"(?:(?P<model>.+)[-_])?"
_FIRST = r"(?:(?P<model>.+?)[-_])?"
_OWN = rf"(?:(?P<model>(?:.+_)?{OWN})_)?"
_NUMBER = r"(?P<which>\d+(?:\.\d+)?)"
_FRACTION = r"(?P<which>0?\.\d+)"
_PROBABILITY = r"(?:p|prob|proba|probability)"
# Endings of columns of forecasts.  "lo" and "hi" are the ends of an interval with its share in percent.
ENDINGS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("lo", rf"{_MODEL}lo[- .]{_NUMBER}"),
        ("hi", rf"{_MODEL}hi[- .]{_NUMBER}"),
        ("median", rf"{_MODEL}(?P<which>median)"),
        ("fraction", rf"{_FIRST}(?:ql|q[-_]?|quantile[-_]?){_FRACTION}"),
        ("fraction", rf"{_OWN}{_FRACTION}"),
        ("percent", rf"{_MODEL}(?:q-|quantile_p){_NUMBER}"),
        ("member", rf"{_MODEL}(?:member|sample|ensemble|ens|mem|draw)[-_]?(?P<which>\d+)"),
        ("mean", rf"{_MODEL}(?P<which>mean|mu|loc)"),
        ("sd", rf"{_MODEL}(?P<which>sd|std|scale|sigma|stddev|stdev)"),
        ("p", rf"{_MODEL}(?P<which>{_PROBABILITY})"),
        ("label", rf"{_MODEL}{_PROBABILITY}_(?P<which>.+)"),
    )
)
LEVEL_KINDS: dict[str, Callable[[str], float]] = {
    "lo": lambda text: (100.0 - float(text)) / 200.0 if float(text) > 0.0 else 0.0,
    "hi": lambda text: (100.0 + float(text)) / 200.0 if float(text) > 0.0 else 0.0,
    "median": lambda _: 0.5,
    "fraction": float,
    "percent": lambda text: float(text) / 100.0,
}
# Ends of intervals or quantiles whose level is not clear, which are no point forecasts.
UNCLEAR = re.compile(r"(?:.+[-_ ])?(?:lower|upper|lo|hi|low|high|ql?|p|quantile)[-_ .]?(?:bound)?[\d.]*", re.IGNORECASE)


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


def show_time(kind: str, value: Any) -> str:
    """A time as text, by the kind of its column."""
    if kind.startswith("dates"):
        head, _, tail = str(np.datetime64(int(value), "ns")).partition("T")
        return head if set(tail) <= set("0:.") else f"{head} {tail.rstrip('0').rstrip('.')}"
    return str(int(value))


def _shown(labels: Sequence[Label]) -> str:
    return f"columns {listed(labels)}" if labels else "no columns"


def _check_different(names: Sequence[Label], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected different columns{what}, got {twice!r} twice")


# --- one name


def level_of(text: str) -> tuple[str, float, bool] | None:
    """Read a name as a quantile: its model, its level, and if it ends an interval; None if it is not one."""
    for kind, pattern in ENDINGS:
        if kind in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            level = round(LEVEL_KINDS[kind](m["which"]), 12)
            return (m["model"] or "", level, kind in ("lo", "hi")) if 0.0 < level < 1.0 else None
    return None


@lru_cache(maxsize=4096)
def readings(text: str) -> dict[str, tuple[str, Any]]:
    """Readings of a name by kind: the model, and the text that was found; of a "level" what `level_of` says."""
    found: dict[str, tuple[str, Any]] = {}
    if (level := level_of(text)) is not None:
        found["level"] = level[0], level
    for kind, pattern in ENDINGS:
        if kind not in LEVEL_KINDS and (m := pattern.fullmatch(text)):
            found[kind] = m["model"] or "", m["which"]
    return found


@lru_cache(maxsize=4096)
def owner_of(text: str) -> str | None:
    """Beginning of a column that was added, which is `Form.base` of its model; None for other columns."""
    for m in re.finditer(rf"(?:^|(?<=_)){OWN}(?=$|[-_ ])", text) if OWN in text else ():
        ending = text[m.end() + 1 :]
        if not ending or ending in (*CERTIFICATE, *ALARMS) or "" in (model for model, _ in readings(ending).values()):
            return text[: m.end()]
    return None


# --- the columns of a model, and of a frame


class Output(NamedTuple):
    """Added column."""

    name: str
    what: str  # "quantile", "mean", "sd", "member" or "probability"
    level: float | None = None  # of a quantile
    place: int | None = None  # number of the found column that it replaces; None for a level that was asked for
    column: Label | None = None  # that column


@dataclass(frozen=True, eq=False)
class Form:
    """Forecast columns of one model."""

    model: str
    kind: str
    columns: tuple[Label, ...]  # in the order of levels (increasing), members, labels, or mean and spread
    levels: NDArray[np.float64] | None = None
    labels: tuple[str, ...] | None = None
    mean: Label | None = None  # beside quantiles: no forecast of its own, but a new one is added
    intervals: bool = field(default=False, repr=False)
    explicit: bool = field(default=False, repr=False)
    ordered: bool = field(init=False, repr=False)  # outcomes are numbers
    base: str = field(init=False, repr=False)  # beginning of the names of added columns
    certificate: dict[str, str] = field(init=False, repr=False)  # names of the columns beside the forecasts
    alarms: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        base = f"{self.model}_{OWN}" if self.model else OWN
        certificate = {what: f"{base}_{what}" for what in CERTIFICATE}
        ordered = self.kind not in ("binary", "labels")
        # a point has no distribution to monitor
        alarms = [f"{base}_{what}" for what in ALARMS[: 1 if self.kind == "point" else 2]]
        self.__dict__.update({"ordered": ordered, "base": base, "certificate": certificate, "alarms": alarms})

    def outputs(self, levels: ArrayLike | None = None) -> tuple[Output, ...]:
        """Added forecasts, in the form that was found, with quantiles at more levels if asked for."""
        asked = [] if levels is None else asked_levels(levels)
        if not self.ordered and asked:
            raise ValueError(f"expected no levels beside {KINDS[self.kind]}, got {short(levels)}")
        # a point forecast gives its median and the intervals 80 and 95, or the levels asked for instead
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
            found += [Output(f"{self.base}{self._ending(level)}", "quantile", level) for level in new]
            found.sort(key=lambda out: out.level or -1.0)
        return tuple(found)

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the columns that replace the forecasts."""
        return tuple(out.name for out in self.outputs() if out.place is not None)

    def _ending(self, level: float) -> str:
        """Ending of a quantile's name."""
        if not self.intervals:
            return f"_q{plain(level)}"
        side = "lo" if level < 0.5 else "hi"
        ending = "median" if level == 0.5 else f"{side}-{plain(100.0 * abs(1.0 - 2.0 * level))}"
        return f"-{ending}" if self.model else f"_{ending}"

    def _named_after(self, column: Label, what: str, place: int = 0) -> str:
        """Name of the column that replaces a found one: its ending behind the base, or else a plain ending."""
        if self.kind == "point":
            return self.base
        if self.explicit:
            level = 0.0 if self.levels is None else float(self.levels[place])
            label = "p" if self.labels is None else f"p_{self.labels[place]}"
            endings = {"quantile": f"q{plain(level)}", "member": f"member_{place + 1}", "probability": label}
            return f"{self.base}_{endings.get(what, what)}"
        text = str(column)
        return f"{self.base}{text[len(self.model) :]}" if self.model else f"{OWN}_{text}"


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """Roles of the columns of a frame; ``taken`` are all columns with a role, which are no forecasts."""

    series: tuple[Label, ...]
    time: Label | None
    cutoff: Label | None
    horizon: Label | None
    y: Label  # None in a frame without outcomes
    forms: tuple[Form, ...]
    known: Label | None = None  # None unless it is named
    taken: tuple[Label, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        each = [self.y, self.time, self.cutoff, self.horizon, self.known, *self.series]
        self.__dict__["taken"] = tuple(column for column in each if column is not None)

    def earlier(self, columns: Iterable[Label]) -> tuple[Label, ...]:
        """Columns that an earlier run added for these models; the new ones take their place."""
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
            found[level[1]] = column
    return dict(sorted(found.items()))


def asked_levels(levels: ArrayLike) -> list[float]:
    """Different levels in increasing order."""
    try:
        values = np.unique(np.asarray(levels, dtype=np.float64).round(10))
    except (TypeError, ValueError):
        values = np.zeros(1)
    if not ((values > 0.0) & (values < 1.0)).all():
        raise ValueError(f"expected levels strictly between 0 and 1, got {short(levels)}")
    return [float(value) for value in values]


# --- finding


def find(
    columns: Sequence[Label],
    *,
    numeric: Collection[Label],
    model: Any = None,
    pending: bool = False,
    is_event: Callable[[Label], bool] = lambda _: False,
    **names: Any,
) -> ColumnLayout:
    """Find the columns of series, time, cutoff, horizon, outcome and of each model, from their names.

    ``names`` are those of y, series (or several), time, cutoff, horizon and known, as far as they are given.  ``model``
    is a name, several, or None for all that are found; or it has the columns of each model, see `_explicit`.
    ``pending`` accepts a frame without outcomes.  ``is_event`` tells if all outcomes of a column are 0 or 1.
    """
    roles = _roles(list(columns), names, pending)
    event = roles.y is not None and is_event(roles.y)
    candidates = _Candidates(list(columns), set(numeric), roles, event)
    if isinstance(model, Mapping):
        forms = [_explicit(str(name), parts, candidates) for name, parts in model.items()]
    else:
        candidates.read()
        names_ = None if model is None else map(str, _several(model, "model"))
        forms = candidates.all() if names_ is None else [candidates.named(text) for text in names_]
    if not forms:
        raise ValueError("expected at least one model, got none")
    _check_different([form.model for form in forms], " for each model")
    for form in forms:
        _check(form, roles)
    return dataclasses.replace(roles, forms=tuple(forms))


def _roles(labels: list[Label], names: Mapping[str, Any], pending: bool) -> ColumnLayout:
    """Layout without forms."""
    texts = {str(label): label for label in labels}
    _check_different(list(map(str, labels)), "")
    for label in labels:
        if isinstance(label, tuple):
            raise ValueError(f"expected columns with plain names, got {label!r}")
    if unknown := set(names) - {*ROLES, "known"}:
        raise TypeError(f"expected names of y, series, time, cutoff, horizon and known, got {short(unknown)}")
    found: dict[str, list[Label]] = {}
    for role, name in names.items():
        if name is not None:
            found[role] = [_column(each, labels, f"{role}=") for each in _several(name, role)]
            if role != "series" and len(found[role]) != 1:
                raise ValueError(f"expected one name as {role}=, got {short(name)}")
    taken = [label for each in found.values() for label in each]
    convention = next((words for words in CONVENTIONS if texts.keys() >= set(words.values())), {})
    usual = set(convention.values())
    for role, words in ROLES.items():
        if role in found:
            continue
        free = {text: label for text, label in texts.items() if label not in taken}
        there = [convention[role]] if convention.get(role) in free else []
        there = there or [text for text in free if text.lower() in words and text not in usual]
        if len(there) > 1:
            raise ValueError(f"expected one column for {role}, got {listed(there)}: name one by {role}=")
        found[role] = [free[text] for text in there]
        taken += found[role]
    if not found["y"] and not pending:
        raise ValueError(
            f"expected a column of outcomes named {listed(OUTCOME, 'or')}, "
            f"or y= with its name, or target= with a table of outcomes, got {_shown(labels)}"
        )
    series = tuple(found.pop("series"))
    one: dict[str, Any] = {role: next(iter(each), None) for role, each in found.items()}
    layout = ColumnLayout(series, forms=(), **one)
    _check_different(layout.taken, " for y, series, time, cutoff, horizon and known")
    return layout


def _column(name: Label, labels: list[Label], what: str) -> Label:
    """Column with a name that was given; a number may be given as text."""
    for label in labels:
        if str(label) == str(name):
            return label
    raise ValueError(f"expected the name of a column as {what}, got {name!r} in a frame with {_shown(labels)}")


def _several(names: Any, what: str) -> list[Label]:
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        return list(names)
    if not isinstance(names, Hashable):
        raise TypeError(f"expected a name or several as {what}=, got {short(names)}")
    return [names]


class _Candidates:
    """The form of each model that the names of the free columns tell."""

    def __init__(self, labels: list[Label], numeric: set[Label], roles: ColumnLayout, event: bool) -> None:
        self.labels, self.numeric, self.roles, self.event = labels, numeric, roles, event
        self.free = {str(label): label for label in labels if label not in roles.taken}
        self.found: dict[str, Form] = {}

    def read(self) -> None:
        """Read the names of the free columns."""
        models: dict[str, dict[str, dict[str, Any]]] = {}
        for text, label in self.free.items():
            for kind, (model, which) in readings(text).items():
                if label in self.numeric or kind != "label":
                    models.setdefault(model, {}).setdefault(kind, {})[text] = which
        forms = {model: next(self._forms(model, kinds), None) for model, kinds in models.items()}
        self.found = {model: form for model, form in forms.items() if form is not None}

    def _forms(self, model: str, kinds: Mapping[str, dict[str, Any]]) -> Iterator[Form]:
        """Forms of one model, in the order of `KINDS`; none of a kind where two columns have one meaning."""
        members, spreads, chances = (kinds.get(kind, {}) for kind in ("member", "sd", "p"))
        # a column with the name of the model is its mean if there is no other
        means = [*kinds.get("mean", ()), *(text for text in (model,) if text and text in self.free)]
        if "level" in kinds:
            yield from self._quantiles(model, kinds["level"], means)
        if len(members) > 1:
            yield self._form(model, "members", sorted(members, key=lambda text: int(members[text])))
        if len(means[: len(kinds.get("mean", ())) or 1]) == len(spreads) == 1:
            yield self._form(model, "normal", (means[0], *spreads))
        if len(labels := kinds.get("label", {})) > 1:
            yield self._form(model, "labels", labels, labels=tuple(labels.values()))
        if len(chances) == 1:
            yield self._form(model, "binary", chances)

    def _quantiles(self, model: str, some: dict[str, Any], means: list[str]) -> Iterator[Form]:
        by_level: dict[float, str] = {}
        for text, (_, level, _) in some.items():
            if level in by_level and owner_of(model) != model:
                raise ValueError(
                    f"expected one column for each level{of_model(model)}, got {by_level[level]!r} and {text!r} for "
                    f"{plain(level)}: drop one of them, or name the columns by model="
                )
            by_level[level] = text
        intervals, means = any(interval for _, _, interval in some.values()), [*means]
        if intervals and 0.5 not in by_level and model and model in self.free:
            by_level[0.5] = means.pop()
        if len(by_level) > 1:
            levels, mean = sorted(by_level), self.free[means[0]] if means else None
            texts = [by_level[level] for level in levels]
            yield self._form(model, "quantiles", texts, levels=np.array(levels), mean=mean, intervals=intervals)

    def _form(self, model: str, kind: str, texts: Iterable[str], **rest: Any) -> Form:
        return Form(model, kind, tuple(map(self.free.__getitem__, texts)), **rest)

    def all(self) -> list[Form]:
        """Every model of the frame, where none is named."""
        found = [form for model, form in self.found.items() if owner_of(model) != model]
        if any(form.kind in ("quantiles", "members") for form in found):
            found = [form for form in found if form.ordered]
        one_each = {{"members": "quantiles"}.get(form.kind, form.kind): form for form in reversed(found)}
        if len(one_each) > 1:
            texts = [f"{KINDS[form.kind]}{of_model(form.model)}" for form in reversed(one_each.values())]
            raise ValueError(
                f"expected forecasts of one kind, got {listed(texts, quoted=False)}: "
                f"name the models by model=, such as {found[0].model!r}"
            )
        return found or self._points()

    def _points(self) -> list[Form]:
        """Plain columns of numbers, where nothing better is there."""
        numbers = [text for text, label in self.free.items() if label in self.numeric]
        names = [text for text in numbers if text.lower() not in NEVER and owner_of(text) is None]
        clear = not any(UNCLEAR.fullmatch(text) for text in names)
        if {"unique_id", "ds"} <= set(map(str, self.labels)) and names and clear:
            return [self._point(text) for text in names]
        raise ValueError(
            "expected columns of forecasts such as 'MODEL-lo-90' and 'MODEL-hi-90', 'q0.1' and 'q0.9', 'mean' and "
            f"'sd', 'member_1' and 'member_2', or 'p', got {_shown(self.labels)}: name them by "
            "model={'tree': {0.05: 'lower', 0.95: 'upper'}}, in the command --model tree:0.05=lower,0.95=upper"
        )

    def _point(self, text: str) -> Form:
        return self._form(text, "point", [text], intervals=True)

    def named(self, text: str) -> Form:
        """A model that is named, or a plain column; or a reason why there is none."""
        if text in self.found:
            return self.found[text]
        for form in self.found.values():
            if text in map(str, form.columns):
                whose = f"{KINDS[form.kind]}{of_model(form.model)} in {listed(form.columns)}"
                raise ValueError(f"expected model={form.model!r} for {whose}, got {text!r}")
        if text not in self.free:
            models = [model for model in self.found if owner_of(model) != model]
            known = f"a model of the frame ({listed(models)}) or a column of numbers"
            raise ValueError(f"expected {known} as model=, got {text!r}")
        if self.event:
            asked = f"model={{{text!r}: {{'p': {text!r}}}}}, in the command --model {text}:p={text}, for probabilities"
            point = f"model={{{text!r}: {text!r}}} for a point forecast"
            raise ValueError(f"expected {asked}, or {point}, got {text!r} beside outcomes 0 and 1")
        return self._point(text)


def _explicit(model: str, parts: Any, candidates: _Candidates) -> Form:
    """Model with the names of its columns.

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
        return form("point", [parts], intervals=True)
    elif len(members := list(parts)) > 1:
        return form("members", members)
    raise ValueError(
        "expected the columns of a model as {level: column, level: column}, {'mean': column, 'sd': column}, a list of "
        "members, one column for a point, {'p': column}, or {'p_LABEL': column, ...}, "
        f"got {short(parts)} for model {model!r}"
    )


def _check(form: Form, roles: ColumnLayout) -> None:
    """Chosen columns must differ and have no other role."""
    whose = of_model(form.model)
    _check_different(form.columns, whose)
    for column in form.columns if form.mean is None else (*form.columns, form.mean):
        if column in roles.taken:
            raise ValueError(f"expected a column of forecasts{whose}, got {column!r}, which is y, series or time")
