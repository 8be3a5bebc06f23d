"""Detection of the columns of a frame, by the names people use.

A frame has a row for each forecast.  `find_in` reads a frame, `find` its column names alone; both return a
`ColumnLayout`: the columns of series, time, cutoff, horizon and outcome, and a `Form` for each model.

==========  ====================================================================================================
kind        columns
==========  ====================================================================================================
quantiles   ``M-lo-90`` ``M-hi-90`` ``M-median`` ``M-ql0.1`` ``M_ql0.1`` ``M-q-10`` (Nixtla), ``M_q0.100`` (darts),
            ``q0.1`` ``q_0.1`` ``0.1`` ``quantile_0.1`` (AutoGluon, Chronos, GluonTS and others), ``yhat1 10.0%``
            (NeuralProphet), ``Lo 80`` (R), ``q10`` ``p10`` ``M_q10`` (percents, if the mirror image of each, ``q90``,
            is there too); ``yhat_lower`` ``yhat_upper`` (80%, as Prophet has it), ``lower_bound`` ``upper_bound``
            beside ``pred`` (90%, skforecast), ``mean_ci_lower`` ``mean_ci_upper`` (95%, statsmodels)
members     ``member_1`` ``member01`` ``M_member_1`` ``M-sample-1`` ``ens1`` ``draw_1`` ``pred_boot_1``
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
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from orcast.frame.column_names import (
    ALSO,
    CONVENTIONS,
    CUTOFF,
    DEFAULTS,
    ENSEMBLES,
    HORIZON,
    NEVER,
    OUTCOME,
    SERIES,
    STEPS,
    TIME,
    Level,
    Style,
    listed,
    of_model,
    owner_of,
    plain,
    readings,
    style_of,
)
from orcast.frame.forms import KINDS, ColumnLayout, Form, Label, Output, written_levels
from orcast.frame.frame import INDEX, Frame
from orcast.validation import short

__all__ = ["SERIES", "ColumnLayout", "Form", "Output", "find", "find_in", "label_places", "written_levels"]


def find_in(frame: Any, *, model: Any = None, pending: bool = False, **names: Any) -> ColumnLayout:
    """Find what a data frame holds (pandas, polars, or any that narwhals knows): `find`, with a look at the outcomes.

    The time may also be a pandas index of dates.

    >>> import polars as pl
    >>> find_in(pl.DataFrame({"y": [True, False], "p": [0.7, 0.2]})).forms[0].kind
    'binary'
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    schema = table.searched.schema
    names |= {role: name for role, name in table.roles.items() if names.get(role) is None}
    loose = (nw.Object, nw.Unknown)
    numeric = [c for c, kind in schema.items() if kind.is_numeric() or (kind in loose and table.holds_numbers(c))]
    # a hub's column of that name says what is forecast
    aside = (
        "target"
        if table.spread is not None and "target" not in {*(names.get("series") or ()), names.get("y")}
        else None
    )
    layout = find(
        [name for name in schema if name != aside],
        numeric=numeric,
        model=model,
        pending=pending,
        outcomes=lambda y: outcomes_in(table.column(y)),
        **names,
    )
    layout = dataclasses.replace(layout, assumed=(*table.assumed, *layout.assumed))
    return dataclasses.replace(layout, time=INDEX) if layout.time is None and table.dated else layout


def outcomes_in(column: Any) -> str | None:
    """What a narwhals series of outcomes holds: "numbers", "0/1", "bool" or "labels"; None if nothing yet.

    >>> import narwhals.stable.v2 as nw, polars as pl
    >>> [outcomes_in(nw.from_native(pl.Series(v), series_only=True)) for v in ([1, 0], [1.5], ["a"], [True], [None])]
    ['0/1', 'numbers', 'labels', 'bool', None]
    """
    if column.dtype.is_numeric():
        values = column.cast(nw.Float64).to_numpy()
        values = values[~np.isnan(values)]
    else:
        there = column.drop_nulls()
        if len(there) == 0 or column.dtype == nw.Boolean:
            return "bool" if len(there) else None
        if column.dtype != nw.Object:
            return "labels"
        kinds = set(map(type, there.to_list()))
        if kinds <= {bool, np.bool_}:
            return "bool"
        if not all(issubclass(kind, (bool, int, float, np.number, np.bool_)) for kind in kinds):
            return "labels"
        try:
            values = np.array(there.to_list(), dtype=np.float64)
        except OverflowError:
            return "numbers"  # of which one is refused when they are read
    if values.size == 0:
        return None
    return "0/1" if bool(((values == 0.0) | (values == 1.0)).all()) else "numbers"


def find(
    columns: Sequence[Label],
    *,
    numeric: Collection[Label],
    model: Any = None,
    pending: bool = False,
    outcomes: str | Callable[[Label], str | None] | None = None,
    **names: Any,
) -> ColumnLayout:
    """Find which columns are what, from their names and which of them hold numbers.

    ``names`` are those of the columns y, series (or several), time, cutoff, horizon and known, as far as they are
    given; the last one is not looked for.
    ``model`` is a name, several, or None for all that are found; or it has the columns of each model:

        {"tree": {0.1: "lower", 0.9: "upper"}}      quantiles by level (and "mean", if there is one)
        {"tree": {"mean": "m", "sd": "s"}}          a normal distribution
        {"tree": ["a", "b", "c"]}                   members
        {"tree": "column"}                          a point
        {"tree": {"p": "chance"}}                   the probability of 1
        {"tree": {"p_home": "h", "p_away": "a"}}    the probabilities of labels

    ``pending``: a frame without outcomes will do.  ``outcomes`` are what the outcomes are, if known: "numbers", "0/1",
    "bool" or "labels"; or a function that tells it of their column.

    >>> columns = ["unique_id", "ds", "cutoff", "y", "ETS", "ETS-lo-80", "ETS-hi-80"]
    >>> layout = find(columns, numeric=columns[3:])
    >>> layout.forms[0].model, layout.forms[0].columns, layout.forms[0].levels.tolist()
    ('ETS', ('ETS-lo-80', 'ETS', 'ETS-hi-80'), [0.1, 0.5, 0.9])
    """
    labels = list(columns)
    roles = _roles(labels, names, pending, set(numeric))
    if callable(outcomes):
        outcomes = None if roles.y is None else outcomes(roles.y)
    candidates = _Candidates(labels, set(numeric), roles, outcomes)
    if isinstance(model, Mapping):
        forms = [_explicit(str(name), parts, candidates) for name, parts in model.items()]
    elif model is not None:
        forms = [_named(name, candidates) for name in _several(model, "model")]
    else:
        forms = _all(candidates)
    if not forms:
        raise ValueError("expected at least one model, got none")
    _check(forms, candidates)
    assumed = tuple(form.assumed for form in forms if form.assumed is not None)
    return dataclasses.replace(roles, forms=tuple(forms), assumed=assumed)


# --- series, time, outcome


def _roles(labels: list[Label], names: Mapping[str, Any], pending: bool, numeric: set[Label]) -> ColumnLayout:
    """Layout without forms."""
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts):
        raise ValueError(f"expected columns with names of their own, got {_twice(texts)!r} twice")
    odd = [label for label in labels if isinstance(label, tuple)]
    if odd:
        raise ValueError(f"expected columns with plain names, got {odd[0]!r}")
    usual = {"y": OUTCOME, "time": TIME, "cutoff": CUTOFF, "horizon": HORIZON}
    if unknown := set(names) - {*usual, "series", "known"}:
        raise TypeError(f"expected names of y, series, time, cutoff, horizon and known, got {short(unknown)}")
    given = (role for role in (*usual, "known") if names.get(role) is not None)
    found: dict[str, Any] = {role: _column(names[role], labels, f"{role}=") for role in given}
    series = names.get("series")
    several = None if series is None else [_column(name, labels, "series=") for name in _several(series, "series")]
    free = {str(label): label for label in labels if label not in [*found.values(), *(several or [])]}
    convention = next((words for words in CONVENTIONS if set(words.values()) <= set(texts)), {})
    for role, words in usual.items():
        if role not in found:
            found[role] = _only(role, words, free, convention, numeric)
            free.pop(str(found[role]), None)
    if several is None:
        one = _only("series", SERIES, free, convention, numeric)
        several = [] if one is None else [one]
    if found["y"] is None and not pending:
        raise ValueError(
            f"expected a column of outcomes named {listed(OUTCOME, 'or')}, or y= with its name, or target= with a "
            f"table of outcomes, got {_shown(labels)}"
        )
    layout = ColumnLayout(tuple(several), forms=(), **found)
    if len(set(layout.taken)) < len(layout.taken):
        twice = _twice(layout.taken)
        raise ValueError(
            f"expected a column for each of y, series, time, cutoff, horizon and known, got {twice!r} for two"
        )
    return layout


def _only(
    role: str, words: Sequence[str], free: Mapping[str, Label], convention: Mapping[str, str], numeric: set[Label]
) -> Label | None:
    """The one column with a usual name; a convention settles it where there are several."""
    if convention.get(role) in free:
        return free[convention[role]]
    there = [text for text in free if text.lower() in words and text not in convention.values()]
    if not there and role in ALSO:
        # outcomes are numbers, times and names of series are not
        some = [text for text, label in free.items() if (label in numeric) == (role == "y")]
        there = [text for text in some if ALSO[role].fullmatch(text) and owner_of(text) is None]
        there = [text for text in there if text.lower().endswith("end")] or there
    if len(there) > 1:
        raise ValueError(
            f"expected one column for {'the outcome' if role == 'y' else role}, got {listed(there)}: "
            f"{role}= with a name settles it"
        )
    return free[there[0]] if there else None


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


# --- models by their columns' names


class _Candidates:
    """Forms by model and kind, as far as the names of the free columns tell.

    ``doubtful`` are columns that look like forecasts but do not say enough, and the reason; ``ambiguous`` are errors to
    raise if a form is chosen.
    """

    def __init__(self, labels: list[Label], numeric: set[Label], roles: ColumnLayout, outcomes: str | None) -> None:
        self.labels, self.numeric, self.roles, self.outcomes = labels, numeric, roles, outcomes
        self.free = {str(label): label for label in labels if label not in roles.taken}
        self.numbers = dict.fromkeys(text for text, label in self.free.items() if label in numeric)
        self.found: dict[str, dict[str, Form]] = {}
        self.doubtful: dict[str, str] = {}
        self.ambiguous: dict[tuple[str, str], str] = {}
        groups: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in READERS}
        for text in self.free:
            for kind, (model, which) in readings(text).items():
                if kind in STATISTICS:
                    kind, which = "statistic", kind
                if text in self.numbers or kind not in ("statistic", "label"):
                    groups[kind].setdefault(model, {})[text] = which
        self.levels, self.statistics = groups["level"], groups["statistic"]
        for kind, read in READERS.items():
            for model, some in groups[kind].items():
                read(self, model, some)

    def _add(self, model: str, kind: str, texts: Iterable[str], **rest: Any) -> None:
        columns = tuple(self.free[text] for text in texts)
        self.found.setdefault(model, {})[kind] = Form(model, kind, columns, **rest)

    def _check_one(self, model: str, kind: str, what: str, texts: Sequence[str], key: str = "...") -> None:
        if len(texts) > 1:
            self.ambiguous[model, kind] = (
                f"expected one column for the {what}{of_model(model)}, got {listed(texts)}: "
                f"model={{{model!r}: {{{key}: {texts[0]!r}, ...}}}} settles it"
            )

    def read_percents(self, model: str, some: Mapping[str, Level]) -> None:
        """Read percents as levels if the mirror image of each is there too."""
        by_lead: dict[str, dict[str, Level]] = {}
        for text, level in some.items():
            by_lead.setdefault(level.lead, {})[text] = level
        for lead, alike in by_lead.items():
            there = {level.level for level in alike.values()}
            if len(there) > 1 and (lead == "-q-" or all(round(1.0 - level, 12) in there for level in there)):
                self.levels.setdefault(model, {}).update(alike)
            else:
                self.doubtful |= dict.fromkeys(alike, "which may be percents or not")

    def read_quantiles(self, model: str, some: Mapping[str, Level]) -> None:
        by_level: dict[float, list[str]] = {}
        for text, level in some.items():
            by_level.setdefault(level.level, []).append(text)
        means = self._those(model, "mean")
        if model and model in self.numbers:
            if 0.5 not in by_level and {level.kind for level in some.values()} & {"below", "above", "signed"}:
                by_level[0.5] = [model]
            else:
                means.append(model)
        if len(by_level) < 2:
            if all(level.kind != "median" for level in some.values()):
                self.doubtful |= dict.fromkeys(some, "where two quantiles or more are needed")
            return
        for at, texts in by_level.items():
            self._check_one(model, "quantiles", f"{plain(at)} quantile", texts, plain(at))
        order = sorted(by_level)
        columns = [by_level[at][0] for at in order]
        mean = self.free[means[0]] if means else None
        self._add(model, "quantiles", columns, levels=np.array(order), mean=mean, style=style_of(list(some.values())))

    def read_members(self, model: str, some: Mapping[str, str]) -> None:
        if len(some) > 1:
            self._add(model, "members", sorted(some, key=lambda text: int(some[text])))

    def read_statistics(self, model: str, some: Mapping[str, str]) -> None:
        means, spreads, chances = (self._those(model, what) for what in STATISTICS)
        if not means and spreads and model in self.numbers:
            means = [model]
        self._check_one(model, "normal", "mean", means)
        self._check_one(model, "normal", "spread", spreads)
        self._check_one(model, "binary", "probability", chances)
        if means and spreads:
            self._add(model, "normal", (means[0], spreads[0]))
        if chances:
            self._add(model, "binary", chances[:1])

    def _those(self, model: str, what: str) -> list[str]:
        """Columns of one statistic of a model."""
        return [text for text, which in self.statistics.get(model, {}).items() if which == what]

    def read_labels(self, model: str, some: Mapping[str, str]) -> None:
        labels = {label: text for text, label in some.items()}
        if len(labels) > 1:
            self._add(model, "labels", labels.values(), labels=tuple(labels))

    def read_bounds(self, model: str, some: Mapping[str, str]) -> None:
        for library, share, name, columns in DEFAULTS:
            if set(some) & set(columns) and set(columns) <= set(self.numbers):
                levels = np.array([round((1.0 - share) / 2.0, 12), 0.5, round((1.0 + share) / 2.0, 12)])
                spelt = ", ".join(f"{plain(at)}: {text!r}" for at, text in zip(levels, columns, strict=True))
                assumed = (
                    f"{columns[0]!r} and {columns[2]!r} were read as the ends of the {100 * share:.0f}% interval, the "
                    f"default of {library}: model={{{name or 'forecast'!r}: {{{spelt}}}}} with other levels says "
                    "otherwise"
                )
                self._add(name, "quantiles", columns, levels=levels, assumed=assumed)
                return
        self.doubtful |= dict.fromkeys(some, "ends of intervals without a level")

    def best(self, model: str) -> Form | None:
        """The first kind of forecasts that a model has and that the outcomes can be about."""
        forms = self.found.get(model, {})
        return next((forms[kind] for kind in KINDS if kind in forms and self.why_not(forms[kind]) is None), None)

    def why_not(self, form: Form) -> str | None:
        """Why the outcomes cannot be what a form is about."""
        outcomes, y = self.outcomes, self.roles.y
        if form.kind not in ("labels", "binary") and outcomes in ("labels", "bool"):
            what = "true or false" if outcomes == "bool" else "text"
            whose = f"{KINDS[form.kind]}{of_model(form.model)}"
            return f"expected numbers as outcomes in column {y!r} beside {whose}, got {what}"
        if form.kind == "binary" and outcomes in ("numbers", "labels"):
            other = "text" if outcomes == "labels" else "other numbers"
            return (
                f"expected outcomes 0 or 1 beside the probability in {form.columns[0]!r}, got {other} in column {y!r}"
            )
        if form.kind == "labels" and not all(label.isdecimal() for label in form.labels or ()):
            numbers = y in self.numeric if outcomes is None else outcomes != "labels"
            if numbers and set(map(str.lower, form.labels or ())) != {"true", "false"}:
                names = listed(form.labels or (), "or")
                return f"expected outcomes that name a label ({names}), got numbers in column {y!r}"
        return None

    def models(self) -> list[str]:
        """Models that are not what came out of others."""
        return [model for model in self.found if owner_of(model) != model]


STATISTICS = ("mean", "sd", "p")
# Readers of the endings, in this order: percents may turn out to be levels.
READERS: dict[str, Callable[[_Candidates, str, Any], None]] = {
    "bound": _Candidates.read_bounds,
    "percent": _Candidates.read_percents,
    "level": _Candidates.read_quantiles,
    "member": _Candidates.read_members,
    "statistic": _Candidates.read_statistics,
    "label": _Candidates.read_labels,
}


def _all(candidates: _Candidates) -> list[Form]:
    """Every model that the frame has, without being told any."""
    found = [form for model in candidates.models() if (form := candidates.best(model)) is not None]
    if any(form.kind == "members" for form in found):
        # the mean and the spread of the members
        found = [form for form in found if form.kind != "normal" or form.model.lower() not in ENSEMBLES]
    steps = [form.model for form in found if STEPS.fullmatch(form.model)]
    if len(steps) > 1:
        raise ValueError(
            f"expected forecasts of one horizon in a row, got {listed(steps)}, so many steps ahead each: "
            f"model={steps[0]!r} takes one of them"
        )
    if candidates.outcomes == "0/1":
        # a quantity that was 0 or 1 so far, or an event: both readings of one model are possible
        models = [candidates.found[model] for model in candidates.models()]
        found += [forms["binary"] for forms in models if "binary" in forms]
        found = list(dict.fromkeys(found))
    if any(form.kind in ("quantiles", "members") for form in found) and candidates.outcomes in (None, "numbers"):
        found = [form for form in found if form.kind not in ("labels", "binary")]
    sorts = {"quantiles": 0, "members": 0, "normal": 1, "labels": 2, "binary": 3}
    if len({sorts[form.kind] for form in found}) > 1:
        one_each = {sorts[form.kind]: form for form in reversed(found)}.values()
        kinds = [f"{KINDS[form.kind]}{of_model(form.model)}" for form in reversed(one_each)]
        raise ValueError(
            f"expected forecasts of one kind, got {listed(kinds, quoted=False)}: "
            f"model= with a name, such as model={found[0].model!r}, or with several, settles it"
        )
    return found or _points(candidates)


def _points(candidates: _Candidates) -> list[Form]:
    """Plain columns of numbers, where nothing better is there."""
    for model in candidates.models():
        for form in candidates.found[model].values():
            why = candidates.why_not(form)
            if why is not None:
                raise ValueError(why)
    unsure = [text for text in candidates.doubtful if owner_of(text) is None]
    if unsure:
        example = f"0.05: {unsure[0]!r}, 0.95: {unsure[1] if len(unsure) > 1 else 'another'!r}"
        raise ValueError(
            f"expected columns of forecasts that tell by their names what they are, got {listed(unsure)}, "
            f"{candidates.doubtful[unsure[0]]}: model= with a name, or with levels as in "
            f"model={{'tree': {{{example}}}}}, settles it"
        )
    names = [text for text in candidates.numbers if text.lower() not in NEVER and owner_of(text) is None]
    if {"unique_id", "ds"} <= set(map(str, candidates.labels)) and names:
        return [_point(text, candidates) for text in names]
    asked = f"; model= with a name says which of {listed(names)} are forecasts" if names else ""
    raise ValueError(
        "expected columns of forecasts such as 'MODEL-lo-90' and 'MODEL-hi-90', 'q0.1' and 'q0.9', 'mean' and 'sd', "
        f"'member_1' and 'member_2', or 'p', got {_shown(candidates.labels)}{asked}"
    )


def _point(text: str, candidates: _Candidates) -> Form:
    kind = "binary" if candidates.outcomes == "bool" else "point"
    return Form(text, kind, (candidates.free[text],), style=Style(True, "-"))


# --- models by their own names


def _named(name: Label, candidates: _Candidates) -> Form:
    """The model with a name that was given."""
    text = str(name)
    best = candidates.best(text)
    if best is not None:
        return best
    if text in candidates.numbers:
        return _point(text, candidates)
    if text in candidates.free:
        raise ValueError(f"expected numbers in the column of model {text!r}, got another type")
    for form in candidates.found.get(text, {}).values():
        raise ValueError(candidates.why_not(form) or "")
    known = [model for model in candidates.models() if candidates.best(model) is not None]
    there = f"a model of the frame, {listed(known)}," if known else "a model of the frame, which has none,"
    raise ValueError(f"expected {there} or a column of numbers as model=, got {name!r}")


def _explicit(model: str, parts: Any, candidates: _Candidates) -> Form:
    """A model whose columns were explicit out."""

    def label(name: Label) -> Label:
        return _column(name, candidates.labels, f"model={{{model!r}: ...}}")

    def form(kind: str, names: Iterable[Label], **rest: Any) -> Form:
        return Form(model, kind, tuple(map(label, names)), explicit=True, **rest)

    if isinstance(parts, Mapping):
        keys = list(parts)
        if set(keys) == {"mean", "sd"}:
            return form("normal", (parts["mean"], parts["sd"]))
        if keys == ["p"]:
            return form("binary", parts.values())
        if len(keys) > 1 and all(isinstance(key, str) and key.startswith("p_") for key in keys):
            return form("labels", parts.values(), labels=tuple(key[2:] for key in keys))
        order = sorted(key for key in keys if _is_level(key))
        if len(order) > 1 and set(keys) - set(order) <= {"mean"}:
            mean = label(parts["mean"]) if "mean" in parts else None
            return form("quantiles", (parts[key] for key in order), levels=np.array(order, dtype=np.float64), mean=mean)
    elif isinstance(parts, str) or not isinstance(parts, Iterable):
        return form("binary" if candidates.outcomes == "bool" else "point", [parts], style=Style(True, "-"))
    elif len(members := list(parts)) > 1:
        return form("members", members)
    raise ValueError(
        "expected the columns of a model as {level: column, level: column}, {'mean': column, 'sd': column}, a list of "
        "members, one column for a point, {'p': column}, or {'p_LABEL': column, ...}, "
        f"got {short(parts)} for model {model!r}"
    )


def _is_level(key: object) -> bool:
    return isinstance(key, float | np.floating) and 0.0 < float(key) < 1.0


# --- what was found must be of use


def _check(forms: list[Form], candidates: _Candidates) -> None:
    """Chosen columns must hold numbers, fit the outcomes, and leave room for the added ones."""
    models = [form.model for form in forms]
    if len(set(models)) < len(models):
        raise ValueError(f"expected models with names of their own, got {_twice(models)!r} twice")
    bases = {form.base: form.model for form in forms}
    for form in forms:
        whose = of_model(form.model)
        doubt = None if form.explicit else candidates.ambiguous.get((form.model, form.kind))
        if problem := doubt or candidates.why_not(form):
            raise ValueError(problem)
        if len(set(form.columns)) < len(form.columns):
            raise ValueError(f"expected different columns{whose}, got {_twice(form.columns)!r} twice")
        for column in form.columns:
            if column in candidates.roles.taken:
                raise ValueError(f"expected a column of forecasts{whose}, got {column!r}, which is y, series or time")
            if column not in candidates.numeric:
                raise ValueError(f"expected numbers in column {column!r}{whose}, got another type")
        for column in (*form.columns, *([] if form.mean is None else [form.mean])):
            owner = owner_of(str(column))
            if owner in bases:
                raise ValueError(
                    f"expected a model or what came out of it, got both: {bases[owner]!r} and column {column!r}"
                )


# --- outcomes that name labels


def label_places(column: Any, labels: Sequence[str]) -> NDArray[np.intp]:
    """Which of the labels each outcome names: its place, or -1 where there is none yet.

    Outcomes may be text, whole numbers, or true and false, and are compared as text.

    >>> import polars as pl
    >>> label_places(pl.Series(["away", None, "home"]), ("home", "away"))
    array([ 1, -1,  0])
    """
    values = nw.from_native(column, series_only=True)
    known = {label: i for i, label in enumerate(labels)}
    there = [value for value in values.drop_nulls().unique().to_list() if value == value]
    places = []
    for value in there:
        place = next((known[text] for text in label_texts(value) if text in known), None)
        if place is None:
            row = int(np.flatnonzero((values == value).fill_null(False).to_numpy())[0])
            raise ValueError(f"expected a label {listed(labels, 'or')} as outcome, got {value!r} in row {row}")
        places.append(place)
    if not there:
        return np.full(len(values), -1, dtype=np.intp)
    found = values.replace_strict(there, places, return_dtype=nw.Int64, default=-1)
    return np.asarray(found.to_numpy(), dtype=np.intp)


def label_texts(value: Any) -> tuple[str, ...]:
    """How an outcome may be written as a label."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)), str(bool(value)).lower(), str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value)), str(value)
    return (str(value),)


# --- sentences


def _shown(labels: Sequence[Label]) -> str:
    return f"columns {listed(labels)}" if labels else "no columns"


def _twice(names: Sequence[Label]) -> Label:
    return next(name for i, name in enumerate(names) if name in names[:i])
