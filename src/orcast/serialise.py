"""Ids and features as plain data, so that a pending round can be saved without pickle."""

from __future__ import annotations

import copy
import datetime
import json
import math
from collections.abc import Hashable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.validation import short

# Largest whole number as id: JSON of more than 4,300 digits is refused.
MOST_BITS = 10_000


def plain_features(x: Any) -> Any:
    """Check features that can be saved: names and values, or a row of values."""
    if hasattr(x, "to_dict") and hasattr(x, "index"):
        x = x.to_dict()  # a row of a data frame
    found = dict(x) if isinstance(x, Mapping) else {"": x}
    for key, value in found.items():
        if not isinstance(key, str) or not _can_be_saved(value):
            raise TypeError(
                f"expected features as plain values by name, got {f'{short(key)}: ' if key else ''}{short(value)}"
            )
    return copy.deepcopy(found if isinstance(x, Mapping) else x)


def _can_be_saved(value: Any) -> bool:
    if value is None or type(value) in (bool, float, str):
        return True
    try:
        json.dumps(features_to_json(value))
    except (TypeError, ValueError, RecursionError):  # numbers of too many digits, lists that are too deep
        return False
    return not isinstance(value, dict)


def features_to_json(value: Any) -> Any:
    """Convert features to JSON types."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"features": {key: features_to_json(each) for key, each in value.items()}}
    if isinstance(value, np.generic) and value.dtype.kind in "fiub":
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return {"array": [features_to_json(each) for each in value.ravel().tolist()], "shape": list(value.shape)}
    if isinstance(value, tuple):
        return {"tuple": [features_to_json(each) for each in value]}
    if isinstance(value, list):
        return [features_to_json(each) for each in value]
    return _plain(value)


def features_from_json(data: Any) -> Any:
    """Invert `features_to_json`."""
    if isinstance(data, list):
        return [features_from_json(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "features" in data:
        return {key: features_from_json(each) for key, each in data["features"].items()}
    if "float" in data:
        return float(data["float"])
    if "array" in data:
        return np.array([features_from_json(each) for each in data["array"]]).reshape(data["shape"])
    if "tuple" in data:
        return tuple(features_from_json(each) for each in data["tuple"])
    if "datetime64" in data:
        return np.datetime64(data["datetime64"], data["unit"])
    if "datetime" in data:
        return datetime.datetime.fromisoformat(data["datetime"])
    return datetime.date.fromisoformat(data["date"])


def plain_id(id: object) -> Any:
    """Check an id that can be saved, and convert it to plain data, alike for ids that are equal.

    >>> plain_id((1.0, True)) == plain_id((1, 1))
    True
    """
    if isinstance(id, tuple):
        return {"tuple": [plain_id(part) for part in id]}
    if isinstance(id, bool) or (isinstance(id, float) and id.is_integer()):
        id = int(id)
    if isinstance(id, np.datetime64):
        moment = id.astype("datetime64[us]")
        if isinstance(moment.item(), datetime.datetime) and moment.astype(id.dtype) == id:
            id = moment.item()
    if isinstance(id, datetime.datetime) and id.tzinfo is not None:
        id = id.astimezone(datetime.UTC)
    return _plain(id)


def _plain(value: object) -> Any:
    """Check a value that can be saved, and convert it to plain data."""
    if value is None or isinstance(value, (str, bool)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and value.bit_length() < MOST_BITS:
        return value
    if isinstance(value, np.integer) and value.dtype.kind in "iu":
        return int(value)
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return {"datetime64": str(value), "unit": np.datetime_data(value.dtype)[0]}
    if isinstance(value, datetime.date) and value == value:
        return {"datetime" if isinstance(value, datetime.datetime) else "date": value.isoformat()}
    raise TypeError(f"expected an id of text, whole or finite numbers, dates, or tuples of these, got {short(value)}")


def id_from_plain(data: Any) -> Hashable:
    """Invert `plain_id`."""
    return features_from_json(data)  # type: ignore[no-any-return]


class SettledIds:
    """Hashes of the last ids whose rounds were settled: at least 5,000, at most 10,000 of them.

    Examples
    --------
    >>> settled = SettledIds()
    >>> settled.add("14:00")
    >>> "14:00" in settled, "15:00" in settled, "14:00" in SettledIds(settled.hashes())
    (True, False, True)
    """

    HALF = 5000

    def __init__(self, hashes: ArrayLike = ()) -> None:
        # in the order in which they came
        self._old: dict[int, None] = {}
        self._new: dict[int, None] = dict.fromkeys(np.asarray(hashes, dtype=np.int64).tolist())

    def hashes(self) -> NDArray[np.int64]:
        """All of them."""
        return np.array([*self._old, *self._new], dtype=np.int64)

    def add(self, id: Hashable) -> None:
        """Remember an id."""
        if len(self._new) >= self.HALF:
            self._old, self._new = self._new, {}
        self._new[_digest(id)] = None

    def __contains__(self, id: Hashable) -> bool:
        digest = _digest(id)
        return digest in self._new or digest in self._old


def _digest(id: Hashable) -> int:
    """Hash of an id, the same for ids that are equal."""
    if type(id) is str:
        text = id.encode(errors="surrogatepass")
    else:
        text = b"\0" + json.dumps(plain_id(id)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)
