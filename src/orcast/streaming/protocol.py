"""One line of a stream: what may stand in it, and the forms of a forecast, in and out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from orcast.adapters import Ensemble, Normal, Quantiles
from orcast.validation import short

Id = str | int | float | None

KEYS = ("series", "id", "forecast", "y", "of", "x", "drop", "low", "high", "binary", "labels")
SETTINGS = ("low", "high", "binary", "labels")
# Longer lines are not read: a client that forgets its line ends must not fill the memory.
LONGEST = 16 * 2**20
FORMS = (
    '{"0.1": 3, "0.9": 6}, {"mean": 4, "sd": 1}, {"members": [3, 4, 6]}, {"p": 0.7} or '
    '{"probabilities": {"home": 0.5, "away": 0.5}}'
)


@dataclass(frozen=True, slots=True)
class Given:
    """A forecast as it was found, and what a game takes it as.

    `space` is what its form says of the outcome: "quantity", "binary" or "labels".  `keys` are the levels as they
    were written, or the labels.
    """

    form: str
    space: str
    expert: Any
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A line, read and checked as far as it can be without its series; `print` tells its content from another's."""

    series: str | int | None
    id: Id
    given: Given | None
    y: Any
    of: Id
    x: dict[str, Any] | None
    drop: bool
    settings: dict[str, Any]
    print: str


def read(text: bytes) -> StreamLine:
    """A line from its text, or one clear sentence.

    >>> line = read(b'{"series": "a", "id": "14:00", "forecast": {"mean": 4, "sd": 1}}')
    >>> line.series, line.id, line.given.expert
    ('a', '14:00', Normal(mean=4.0, sd=1.0))
    >>> read(b'{"series": "a", "forecast": {"mean": 4}}')
    Traceback (most recent call last):
    ValueError: expected "sd" beside "mean" in a forecast, got {'mean': 4}
    """
    found = _parsed(text)
    for key in found:
        if key not in KEYS:
            raise ValueError(f"expected keys among {', '.join(KEYS)}, got {short(key)}")
    series, id, of = found.get("series"), found.get("id"), found.get("of")
    if not (series is None or (isinstance(series, (str, int)) and not isinstance(series, bool))):
        raise TypeError(f"expected text or a whole number as series, got {short(series)}")
    _check_id(id, "id")
    _check_id(of, "of")
    drop = found.get("drop", False)
    if not isinstance(drop, bool):
        raise TypeError(f"expected true or false as drop, got {short(drop)}")
    x = found.get("x")
    if not (x is None or isinstance(x, dict)):
        raise TypeError(f'expected features by name as x, such as {{"hour": 14}}, got {short(x)}')
    forecast, y = found.get("forecast"), found.get("y")
    given = None if forecast is None else _given(forecast)
    settings = {key: found[key] for key in SETTINGS if found.get(key) is not None and found[key] is not False}
    _check_parts(given, y, id, of, drop, settings)
    content = json.dumps([forecast, y, of, x, settings], sort_keys=True)
    return StreamLine(
        series, id, given, y, of, x, drop, settings, blake2b(content.encode(), digest_size=12).hexdigest()
    )


def _check_parts(given: Given | None, y: Any, id: Id, of: Id, drop: bool, settings: dict[str, Any]) -> None:
    if given is None and y is None and not drop and not settings:
        raise ValueError("expected a forecast, an outcome y, drop or bounds in a line, got none of them")
    if drop and not (given is None and y is None):
        raise ValueError("expected drop in a line of its own, got a forecast or an outcome y beside it")
    if of is not None and (given is None or y is None):
        raise ValueError('expected "of" where a forecast and the outcome y of an earlier round stand in one line, '
                         'got it alone: "id" names the round of a lone y')  # fmt: skip
    if of is not None and of == id:
        raise ValueError(f"expected the id of an earlier round as of, got that of the forecast beside it, {short(id)}")


def _check_id(id: Any, what: str) -> None:
    if id is None or (isinstance(id, (str, int)) and not isinstance(id, bool)):
        return
    if not isinstance(id, float) or not math.isfinite(id):
        raise TypeError(f"expected text or a number as {what}, got {short(id)}")


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text.decode(), parse_constant=_refuse, object_pairs_hook=_once)
    except UnicodeDecodeError as reason:
        raise ValueError(f"expected a line in UTF-8, got another byte at place {reason.start + 1}") from None
    except json.JSONDecodeError as reason:
        raise ValueError(f"expected a JSON object in a line, got {_excerpt(text)} ({_where(reason)})") from None
    except RecursionError:
        raise ValueError("expected a JSON object in a line, got one that is nested too deeply") from None
    if not isinstance(found, dict):
        raise TypeError(f'expected a JSON object such as {{"forecast": ...}}, got {short(found)}')
    return found


def _excerpt(text: bytes) -> str:
    return short(text[:200].decode(errors="replace"))


def _where(reason: json.JSONDecodeError) -> str:
    return f"{reason.msg[:1].lower()}{reason.msg[1:]} at place {reason.pos + 1}"


def _refuse(name: str) -> None:
    raise ValueError(f"expected finite numbers, got {name}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"expected each key once, got {short(twice)} twice")
    return found


# --- forecasts, in ---


def _given(forecast: Any) -> Given:
    if not isinstance(forecast, dict) or not forecast:
        raise TypeError(f"expected a forecast such as {FORMS}, got {short(forecast)}")
    for name, form in _NAMED.items():
        if name in forecast:
            return form(forecast)
    return _quantiles(forecast)


def _quantiles(forecast: dict[str, Any]) -> Given:
    levels = []
    for key in forecast:
        try:
            levels.append(float(key))
        except ValueError:
            raise ValueError(f"expected a forecast such as {FORMS}, got the key {short(key)}") from None
    values = [_number(value, f"quantile {key}") for key, value in forecast.items()]
    return Given("quantiles", "quantity", Quantiles(levels, values), tuple(forecast))


def _normal(forecast: dict[str, Any]) -> Given:
    for key, other in (("mean", "sd"), ("sd", "mean")):
        if key not in forecast:
            raise ValueError(f'expected "{key}" beside "{other}" in a forecast, got {short(forecast)}')
    _alone(forecast, "mean", "sd")
    return Given("normal", "quantity", Normal(_number(forecast["mean"], "mean"), _number(forecast["sd"], "sd")))


def _members(forecast: dict[str, Any]) -> Given:
    _alone(forecast, "members")
    members = forecast["members"]
    if not isinstance(members, list) or not members:
        raise TypeError(f"expected a list of numbers as members, got {short(members)}")
    values = [_number(value, "member") for value in members]
    # who stands where in the order: the answer keeps it
    places = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return Given("members", "quantity", Ensemble(values), tuple(map(str, places.tolist())))


def _binary(forecast: dict[str, Any]) -> Given:
    _alone(forecast, "p")
    p = _number(forecast["p"], "p")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"expected a probability between 0 and 1 as p, got {p!r}")
    return Given("p", "binary", p)


def _labels(forecast: dict[str, Any]) -> Given:
    _alone(forecast, "probabilities")
    given = forecast["probabilities"]
    if not isinstance(given, dict) or not given:
        raise TypeError(f'expected probabilities by label, such as {{"home": 0.5, "away": 0.5}}, got {short(given)}')
    masses = {label: _number(value, f"probability of {label!r}") for label, value in given.items()}
    return Given("probabilities", "labels", masses, tuple(masses))


_NAMED = {"mean": _normal, "sd": _normal, "members": _members, "p": _binary, "probabilities": _labels}


def _alone(forecast: dict[str, Any], *keys: str) -> None:
    more = [key for key in forecast if key not in keys]
    if more:
        raise ValueError(f"expected {' and '.join(keys)} alone in a forecast, got {short(more[0])} beside")


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected a number as {what}, got {short(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number as {what}, got {short(value)}")
    return number


# --- forecasts, out ---


def told(given: Given, p: Any, levels: Sequence[str] = ()) -> dict[str, Any]:
    """A calibrated forecast in the form of the one it answers; `levels` are the quantiles asked for by the user."""
    if given.form == "p":
        return {"forecast": {"p": p.probability()}}
    if given.form == "probabilities":
        return {"forecast": {"probabilities": p.to_dict()}}
    mean, sd = p.to_normal()
    also: dict[str, Any] = {}
    if given.form == "quantiles":
        form: dict[str, Any] = _at(p, levels or given.keys)
    else:
        if given.form == "normal":
            form = {"mean": mean, "sd": sd}
        else:
            count = len(given.keys)
            spread = p.quantile((np.arange(count) + 0.5) / count).tolist()
            form = {"members": [spread[int(place)] for place in given.keys]}
        if levels:
            also = {"quantiles": _at(p, levels)}
    if given.form == "quantiles" and given.expert.crossed:
        also = {"sorted": True}
    return {"forecast": form, "mean": mean, "sd": sd, **also}


def _at(p: Any, levels: Sequence[str]) -> dict[str, Any]:
    return dict(zip(levels, p.quantile([float(level) for level in levels]).tolist(), strict=True))


def text(answer: dict[str, Any]) -> bytes:
    """An answer as a line; whatever it is, it can be written.

    >>> text({"series": "\\ud800", "mean": float("inf")})
    b'{"series": "\\\\ud800", "mean": null}\\n'
    """
    try:
        return json.dumps(answer, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a character, which JSON can write but UTF-8 cannot
        return json.dumps(_finite(answer), allow_nan=False).encode() + b"\n"
    except ValueError:
        return text(_finite(answer))


def _finite(value: Any) -> Any:
    """Without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
