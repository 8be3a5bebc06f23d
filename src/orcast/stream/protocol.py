"""One line of a stream: what may stand in it, and the forms of a forecast, in and out."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orcast import limits
from orcast.adapters import Ensemble, Normal, Quantiles
from orcast.validation import number, short

Name = str | int | None
Id = str | int | float | None
KEYS = ("series", "id", "forecast", "y", "drop", "low", "high", "binary", "labels")
SETTINGS = ("low", "high", "binary", "labels")
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "series": ((str, int), "text or a whole number"),
    "id": ((str, int, float), "text or a number"),
    "drop": ((bool,), "true or false"),
}
FORMS = (
    '{"0.1": 3, "0.9": 6}, {"mean": 4, "sd": 1}, {"members": [3, 4, 6]}, {"p": 0.7} or '
    '{"probabilities": {"home": 0.5, "away": 0.5}}'
)


@dataclass(frozen=True, slots=True)
class LineForecast:
    """A forecast of a line: its form, the kind of outcome that this is for, and the forecast for a recalibrator.

    `keys` are the levels as they were written, the labels, or the ranks of the members.
    """

    form: str
    space: str
    expert: Any
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A line, checked as far as it can be without its series."""

    series: Name
    id: Id
    forecast: LineForecast | None
    y: Any
    drop: bool
    settings: dict[str, Any]


def read(text: bytes) -> StreamLine:
    """Parse a line.

    >>> line = read(b'{"series": "a", "id": "14:00", "forecast": {"mean": 4, "sd": 1}}')
    >>> line.series, line.id, line.forecast.expert
    ('a', '14:00', Normal(mean=4.0, sd=1.0))
    >>> read(b'{"series": "a", "forecast": {"mean": 4}}')
    Traceback (most recent call last):
    ValueError: expected "sd" beside "mean" in a forecast, got {'mean': 4}
    """
    found = _parsed(text)
    for key in found:
        if key not in KEYS:
            raise ValueError(f"expected keys among {', '.join(KEYS)}, got {short(key)}")
    for key, (kinds, what) in TYPES.items():
        value = found.get(key)
        if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise TypeError(f"expected {what} as {key}, got {short(value)}")
        if isinstance(value, str):
            limits.check("id_characters", len(value))
        elif isinstance(value, (int, float)) and not abs(value) <= sys.float_info.max:
            raise ValueError(f"expected a finite number as {key}, got {short(value)}")
    series, id, drop = found.get("series"), found.get("id"), bool(found.get("drop"))
    forecast, y = found.get("forecast"), found.get("y")
    known = None if forecast is None else read_forecast(forecast)
    settings = {key: found[key] for key in SETTINGS if found.get(key) is not None and found[key] is not False}
    if forecast is None and y is None and not drop and not settings:
        raise ValueError("expected a forecast, an outcome y, drop or bounds in a line, got none of them")
    if (forecast is not None) + (y is not None) + drop > 1:
        raise ValueError("expected a forecast, an outcome y or drop in a line of its own, got two of them")
    return StreamLine(series, id, known, y, drop, settings)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        found = limits.parsed_json(text.decode())
    except UnicodeDecodeError as reason:
        raise ValueError(f"expected a line in UTF-8, got another byte at place {reason.start + 1}") from None
    except json.JSONDecodeError as reason:
        excerpt, what = short(text[:200].decode(errors="replace")), f"{reason.msg[:1].lower()}{reason.msg[1:]}"
        raise ValueError(
            f"expected a JSON object in a line, got {excerpt} ({what} at place {reason.pos + 1})"
        ) from None
    except RecursionError:
        raise ValueError("expected a JSON object in a line, got one that is nested too deeply") from None
    if not isinstance(found, dict):
        raise TypeError(f'expected a JSON object such as {{"forecast": ...}}, got {short(found)}')
    return found


# --- forecasts, in ---


def read_forecast(forecast: Any) -> LineForecast:
    """Read a forecast in one of its forms."""
    if not isinstance(forecast, dict) or not forecast:
        raise TypeError(f"expected a forecast such as {FORMS}, got {short(forecast)}")
    for name, form in _NAMED.items():
        if name in forecast:
            return form(forecast)
    return _quantiles(forecast)


def _quantiles(forecast: dict[str, Any]) -> LineForecast:
    limits.check("levels", len(forecast))
    levels = []
    for key in forecast:
        try:
            levels.append(float(key))
        except ValueError:
            raise ValueError(f"expected a forecast such as {FORMS}, got the key {short(key)}") from None
    values = [_number(value, f"quantile {key}") for key, value in forecast.items()]
    return LineForecast("quantiles", "quantity", Quantiles(levels, values), tuple(forecast))


def _normal(forecast: dict[str, Any]) -> LineForecast:
    for key, other in (("mean", "sd"), ("sd", "mean")):
        if key not in forecast:
            raise ValueError(f'expected "{key}" beside "{other}" in a forecast, got {short(forecast)}')
    _alone(forecast, "mean", "sd")
    return LineForecast("normal", "quantity", Normal(_number(forecast["mean"], "mean"), _number(forecast["sd"], "sd")))


def _members(forecast: dict[str, Any]) -> LineForecast:
    _alone(forecast, "members")
    members = forecast["members"]
    if not isinstance(members, list) or not members:
        raise TypeError(f"expected a list of numbers as members, got {short(members)}")
    limits.check("members", len(members))
    values = [_number(value, "member") for value in members]
    # the rank of each member: the answer keeps their order
    places = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return LineForecast("members", "quantity", Ensemble(values), tuple(map(str, places.tolist())))


def _binary(forecast: dict[str, Any]) -> LineForecast:
    _alone(forecast, "p")
    p = _number(forecast["p"], "p")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"expected a probability between 0 and 1 as p, got {p!r}")
    return LineForecast("p", "binary", p)


def _labels(forecast: dict[str, Any]) -> LineForecast:
    _alone(forecast, "probabilities")
    given = forecast["probabilities"]
    if not isinstance(given, dict) or not given:
        raise TypeError(f'expected probabilities by label, such as {{"home": 0.5, "away": 0.5}}, got {short(given)}')
    limits.check("labels", len(given))
    masses = {label: _number(value, f"probability of {label!r}") for label, value in given.items()}
    return LineForecast("probabilities", "labels", masses, tuple(masses))


_NAMED = {"mean": _normal, "sd": _normal, "members": _members, "p": _binary, "probabilities": _labels}


def _alone(forecast: dict[str, Any], *keys: str) -> None:
    more = [key for key in forecast if key not in keys]
    if more:
        raise ValueError(f"expected {' and '.join(keys)} alone in a forecast, got {short(more[0])} beside")


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool):
        raise TypeError(f"expected a number as {what}, got {short(value)}")
    return number(value, what)


# --- forecasts, out ---


def forecast_fields(forecast: LineForecast, p: Any, levels: Sequence[str] = ()) -> dict[str, Any]:
    """A calibrated forecast in the form of the one it answers; `levels` are the quantiles that the user asked for."""
    if forecast.form == "p":
        return {"forecast": {"p": p.probability()}}
    if forecast.form == "probabilities":
        return {"forecast": {"probabilities": p.to_dict()}}
    mean, sd = p.to_normal()
    also: dict[str, Any] = {}
    if forecast.form == "quantiles":
        form: dict[str, Any] = _at(p, levels or forecast.keys)
    else:
        if forecast.form == "normal":
            form = {"mean": mean, "sd": sd}
        else:
            count = len(forecast.keys)
            spread = p.quantile((np.arange(count) + 0.5) / count).tolist()
            form = {"members": [spread[int(place)] for place in forecast.keys]}
        if levels:
            also = {"quantiles": _at(p, levels)}
    if forecast.form == "quantiles" and forecast.expert.crossed:
        also = {"sorted": True}
    return {"forecast": form, "mean": mean, "sd": sd, **also}


def _at(p: Any, levels: Sequence[str]) -> dict[str, Any]:
    return dict(zip(levels, p.quantile([float(level) for level in levels]).tolist(), strict=True))


def to_line(answer: dict[str, Any]) -> str:
    r"""Encode an answer as one line of JSON.

    >>> to_line({"series": "\ud800", "mean": float("inf")})
    '{"series": "\\ud800", "mean": null}\n'
    """
    try:
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n"
        text.encode()
    except UnicodeEncodeError:  # half a character, which JSON can write but UTF-8 cannot
        return json.dumps(_finite(answer), allow_nan=False) + "\n"
    except ValueError:
        return to_line(_finite(answer))
    return text


def _finite(value: Any) -> Any:
    """Without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
