"""Calls on a store as JSON, and their answers: the lines of `orcast stream`, and the bodies of the service."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orcast import limits
from orcast.adapters import Ensemble, Normal, Quantiles
from orcast.forecasts import Forecast
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.store.series import StoredSeries
from orcast.store.tables import StoredRound
from orcast.store.times import text_of
from orcast.validation import number, short

OF_QUANTITIES = '{"0.1": 3, "0.9": 6}, {"mean": 4, "sd": 1} or {"members": [3, 4, 6]}'
OF_KIND: dict[type, str] = {Binary: '{"p": 0.7}', Labels: '{"probabilities": {"home": 0.5, "away": 0.5}}'}
FORMS = ", ".join([OF_QUANTITIES.replace(" or", ","), *OF_KIND.values()])
# Keys of calls by the JSON types of their values; a forecast and an outcome are checked elsewhere.
_KINDS: dict[tuple[type, ...], tuple[str, ...]] = {
    (): ("forecast", "y", "revise"),
    (str,): ("issued", "target", "known", "outside", "mode"),
    (str, int): ("series",),
    (str, int, float): ("id", "horizon"),
    (int, float): ("low", "high", "memory"),
    (int,): ("max_pending",),
    (bool,): ("cells", "drop", "binary", "pool"),
    (list,): ("levels", "labels"),
    (dict,): ("x",),
}
TYPES = {key: types for types, keys in _KINDS.items() for key in keys}
JSON = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
SPACE = ("low", "high", "binary", "labels")
OPTIONS = ("memory", "max_pending", "outside", "pool", "mode")
# Verb of a call by the key that only it has, and the other keys that each verb takes.
VERBS = {"forecast": "predict", "y": "update", "revise": "revise", "drop": "drop"}
ISSUE = ("id", "x", "horizon", "issued", "target")
TAKES = {"predict": ("forecast", *ISSUE, "levels", "cells"), "update": ("y", "id", "known")}
TAKES |= {"revise": ("revise", "id", "known"), "drop": ("drop", "id")}
_TAKEN = {verb: {"series", *keys} for verb, keys in TAKES.items()}
# Keys of a call in a line.
LINE = ("series", *dict.fromkeys(key for keys in TAKES.values() for key in keys))
# Spaces of the forms of a forecast that are not for quantities.
KINDS = {"p": Binary, "probabilities": Labels}
CERTIFICATE = ("holds", "worst_next", "allowed", "bound", "promised")
LEVELS = ("0.05", "0.25", "0.5", "0.75", "0.95")


# --- calls


def checked(given: Any, keys: Collection[str], needed: str | None = None) -> dict[str, Any]:
    """Check the keys and types of a call; null, and false for a switch, count as left out.

    >>> checked({"id": 1, "y": 3.2, "known": None}, LINE)
    {'id': 1, 'y': 3.2}
    >>> checked({"id": [1], "y": 3.2}, LINE)
    Traceback (most recent call last):
    TypeError: expected string or integer or number as id, got [1]
    """
    if type(given) is not dict:
        raise TypeError(f'expected a JSON object such as {{"forecast": ...}}, got {short(given)}')
    found = {}
    for key, value in given.items():
        if key not in keys:
            raise ValueError(f"expected keys among {', '.join(keys)}, got {short(key)}")
        types, kind = TYPES[key], type(value)
        if value is None or (value is False and key in ("drop", "binary")):
            continue
        if types and kind not in types:
            raise TypeError(f"expected {' or '.join(map(JSON.get, types))} as {key}, got {short(value)}")  # type: ignore[arg-type]
        if kind is str:
            limits.check("id_characters", len(value))
        elif (kind is int or kind is float) and not abs(value) <= sys.float_info.max:
            raise ValueError(f"expected a finite number as {key}, got {short(value)}")
        found[key] = value
    if needed is not None and needed not in found:
        raise ValueError(f"expected {needed} in a call, got none")
    return found


def verb_of(call: Mapping[str, Any]) -> str:
    """Verb of a checked call."""
    found = [verb for key, verb in VERBS.items() if key in call]
    if len(found) != 1:
        raise ValueError(f"expected one of forecast, y, revise and drop in a call, got {len(found) or 'none'} of them")
    (verb,) = found
    if not call.keys() <= _TAKEN[verb]:
        raise ValueError(f"expected {', '.join(TAKES[verb])} in a call, got {', '.join(call.keys() - _TAKEN[verb])}")
    return verb


def space_of(settings: Mapping[str, Any]) -> Space:
    """Space with bounds, of labels, or binary, as the settings of a series give it."""
    binary, labels = settings.get("binary", False), settings.get("labels")
    if sum((binary, labels is not None, "low" in settings or "high" in settings)) > 1:
        raise ValueError(f"expected bounds, binary or labels, got {' and '.join(settings)}")
    if binary:
        return Binary()
    if labels is None:
        return between(settings.get("low"), settings.get("high"))
    if not all(type(label) is str for label in labels):
        raise TypeError(f"expected a list of text as labels, got {short(labels)}")
    return Labels(labels)


def plain_space(space: Any) -> dict[str, Any]:
    """Settings of a space; an infinite bound is None."""
    if isinstance(space, OrderedSpace):
        return {"low": space.low, "high": space.high}
    return {"binary": True} if isinstance(space, Binary) else {"labels": list(space.labels)}


# --- forecasts


@dataclass(frozen=True, slots=True)
class JsonForecast:
    """A forecast in one of the forms of JSON, and the same for a recalibrator.

    `keys` are the levels as they were written, the labels, or the ranks of the members.
    """

    form: str
    expert: Any
    keys: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the space of a series that begins with it, without bounds."""
        if self.form == "p":
            return {"binary": True}
        return {"labels": [*self.keys]} if self.form == "probabilities" else {}

    def check(self, space: Space, name: Any) -> None:
        """Refuse a forecast of another kind of outcome than that of its series."""
        if not isinstance(space, KINDS.get(self.form, OrderedSpace)):
            wanted = next((form for kind, form in OF_KIND.items() if isinstance(space, kind)), OF_QUANTITIES)
            got = f'{{"{self.form}": ...}}' if self.form in KINDS else self.form
            raise ValueError(f"expected a forecast such as {wanted} for series {short(name)}, got {got}")


def read_forecast(forecast: Mapping[str, Any]) -> JsonForecast:
    """Read a forecast in one of its forms.

    >>> read_forecast({"mean": 4, "sd": 1}).expert
    Normal(mean=4.0, sd=1.0)
    >>> read_forecast({"mean": 4})
    Traceback (most recent call last):
    ValueError: expected a forecast such as {"0.1": 3, "0.9": 6}, ..., got the key 'mean'
    """
    named = _collection(forecast, dict).keys()
    if named == {"mean", "sd"}:
        return JsonForecast("normal", Normal(*_numbers((forecast["mean"], forecast["sd"]))))
    if named == {"p"}:
        (p,) = _numbers(forecast.values())
        return JsonForecast("p", number(p, "p", 0.0, 1.0))
    if named == {"members"}:
        limits.check("members", len(_collection(forecast["members"], list)))
        values = _numbers(forecast["members"])
        # the rank of each member: the answer keeps their order
        places = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        return JsonForecast("members", Ensemble(values), tuple(map(str, places.tolist())))
    if named == {"probabilities"}:
        masses = _collection(forecast["probabilities"], dict)
        limits.check("labels", len(masses))
        _numbers(masses.values())
        return JsonForecast("probabilities", masses, tuple(masses))
    limits.check("levels", len(forecast))
    values = _numbers(forecast.values())
    levels = []
    for key in forecast:
        try:
            levels.append(float(key))
        except ValueError:
            raise ValueError(f"expected a forecast such as {FORMS}, got the key {short(key)}") from None
    return JsonForecast("quantiles", Quantiles(levels, values), tuple(forecast))


def _collection(given: Any, kind: type) -> Any:
    if type(given) is not kind or not given:
        raise TypeError(f"expected a forecast such as {FORMS}, got {short(given)}")
    return given


def _numbers(values: Iterable[Any]) -> list[float]:
    found = []
    for value in values:
        if (type(value) is not float and type(value) is not int) or not abs(value) <= sys.float_info.max:
            raise TypeError(f"expected finite numbers in a forecast, got {short(value)}")
        found.append(float(value))
    return found


def as_asked(given: JsonForecast, p: Any, levels: Iterable[float] = ()) -> dict[str, Any]:
    """A calibrated forecast in the form of the one it answers, with the quantiles at `levels` that were asked for."""
    if given.form == "p":
        return {"forecast": {"p": p.probability()}}
    if given.form == "probabilities":
        return {"forecast": {"probabilities": p.to_dict()}}
    asked = tuple(map(str, _numbers(levels)))
    mean, sd = p.to_normal()
    told: dict[str, Any] = {"forecast": {"mean": mean, "sd": sd}, "mean": mean, "sd": sd}
    if given.form == "quantiles":
        told["forecast"] = _quantiles(p, asked or given.keys)
        return told | {"sorted": True} if given.expert.crossed else told
    if given.form == "members":
        spread = p.quantile((np.arange(len(given.keys)) + 0.5) / len(given.keys)).tolist()
        told["forecast"] = {"members": [spread[int(place)] for place in given.keys]}
    return told | {"quantiles": _quantiles(p, asked)} if asked else told


def _quantiles(p: Any, levels: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(levels, p.quantile([float(level) for level in levels]).tolist(), strict=True))


# --- answers


def answer(
    series: StoredSeries, verb: str, call: Mapping[str, Any], *, levels: Iterable[float] = (), timed: bool = True
) -> dict[str, Any]:
    """Make a call; an answer that is not `timed` depends on the calls alone, not on the clock."""
    id, known = call.get("id"), call.get("known")
    if verb == "predict":
        given, asked = read_forecast(call["forecast"]), call.get("levels", levels)
        limits.check("levels", len(asked))
        given.check(series.space, series.name)
        found = series.issue(given.expert, **{key: call[key] for key in ISSUE if key in call})
        told = _about(found, timed) | as_asked(given, found.forecast, asked) | _forecast(found)
        if call.get("cells") and isinstance(found.forecast, Forecast):
            p = found.forecast
            told["cells"] = {"left": p.left.tolist(), "right": p.right.tolist(), "mass": p.mass.tolist()}
        return told | {"evicted": list(found.evicted)} if found.evicted else told
    if verb == "drop":
        found = series.drop(id)
        return _about(found, timed) | {"dropped": True}
    y = call["y"] if "y" in call else call["revise"]
    if isinstance(series.space, Labels) and not isinstance(y, str):
        y = json.dumps(y)  # labels are text, because in JSON they are keys
    if isinstance(series.space, OrderedSpace) and isinstance(y, bool):
        raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
    found = (series.update if verb == "update" else series.revise)(y, id=id, known=known)
    return _about(found, timed) | _outcome(found, timed)


def whole_round(found: StoredRound) -> dict[str, Any]:
    """All about a round, with a forecast of a quantity as quantiles."""
    p = found.forecast
    if isinstance(p, Forecast):
        plain = _quantiles(p, LEVELS)
    else:
        plain = {"p": p.probability()} if isinstance(p.space, Binary) else {"probabilities": p.to_dict()}
    return _about(found, True) | {"forecast": plain} | _forecast(found) | _outcome(found, True)


def _about(found: StoredRound, timed: bool) -> dict[str, Any]:
    """Names of a round, its status, and its times; those that it does not have are left out."""
    told = {"series": found.series, "id": found.id}
    if timed:
        told["status"], told["horizon"] = found.status, found.horizon
        told["issued"], told["target"] = text_of(found.issued_at), text_of(found.target_at)
        told["repeated"] = True if found.repeated else None
    return {name: value for name, value in told.items() if value is not None}


def _forecast(found: StoredRound) -> dict[str, Any]:
    """Certificate of a round, and which forecast it published if that is not the recalibrated one."""
    stated = vars(found.recalibrated.certificate)
    told: dict[str, Any] = {"certificate": {name: stated[name] for name in CERTIFICATE}}
    if stated["excess"]:
        told["certificate"]["excess"] = stated["excess"]
    return told if found.published == "recalibrated" else told | {"published": found.published}


def _outcome(found: StoredRound, timed: bool) -> dict[str, Any]:
    """Outcome of a round, if it is known, the guarantee after it, and the alarms that it raised."""
    if found.y_text is None or found.known_at is None:
        return {}
    told = {"y": found.y, "guarantee": found.guarantee}
    alarms = [alarm.to_plain(found.of.when) if timed else alarm.to_plain() for alarm in found.alarms]
    told |= {"alarm": alarms} if alarms else {}
    if timed:
        told["known"] = text_of(found.known_at)
        told |= {"revisions": found.revisions} if found.revisions else {}
    return told
