"""Steps and answers as JSON: what a step is made of is read from it, what comes of it is written as it.

A dict with one of these keys alone stands for what JSON does not have: {"normal": [40, 8]}, {"tuple": ["a", 1]}.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import orcast as oc

_READ: dict[str, Callable[[Any], Any]] = {
    "normal": lambda given: oc.Normal(*given),
    "ensemble": lambda given: oc.Ensemble(given),
    "quantiles": dict,
    "forecast": lambda given: oc.Forecast(**given),
    "tuple": lambda given: tuple(map(read, given)),
    "array": lambda given: np.array(read(given)),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "datetime64": lambda given: np.datetime64(*given),
    "float": float,
}


def read(data: Any) -> Any:
    """What JSON stands for."""
    if isinstance(data, list):
        return [read(each) for each in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        (key,) = data
        if key in _READ:
            return _READ[key](data[key])
    return {key: read(value) for key, value in data.items()}


def written(value: Any) -> Any:
    """An answer as JSON: numbers to the last bit, ids as `read` takes them."""
    if isinstance(value, np.datetime64):
        return {"datetime64": [str(value), np.datetime_data(value.dtype)[0]]}
    if isinstance(value, (np.ndarray, np.generic)):
        return written(value.tolist())
    if isinstance(value, dict):
        return {str(key): written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [written(each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [written(each) for each in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, datetime.datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return value
