"""Client of the service: series on another machine, with the verbs of a `Recalibrator`."""

from __future__ import annotations

import datetime
import http.client
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote, urlsplit

import numpy as np

from orcast.adapters import Ensemble, Normal, Quantiles
from orcast.forecasts import Forecast
from orcast.ledger import Certificate, Guarantee
from orcast.validation import short

# Seconds for an answer.
PATIENCE = 60.0
NUMBER = (int, float, np.integer, np.floating)


class ServiceError(ValueError):
    """A request that the service refused; `status` is that of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Client:
    """Connection to `orcast serve`, for one thread.

    A request without an answer is sent a second time: the service recognises calls that it has made.

    Parameters
    ----------
    url
        Address of the service, such as ``http://127.0.0.1:8000``.
    token
        One of its tokens.

    Raises
    ------
    ConnectionError
        If the service does not answer.
    ServiceError
        If it refuses a request; `status` is that of HTTP.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:9")
    >>> client.series("wind", low=0, high=36_000)
    Traceback (most recent call last):
    ConnectionError: expected an answer of http://127.0.0.1:9, got [Errno 111] Connection refused
    """

    def __init__(self, url: str, *, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected an address such as http://127.0.0.1:8000, got {short(url)}")
        self.url = url.rstrip("/")
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = made(parts.hostname, parts.port, timeout=PATIENCE)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def series(self, name: str | int, **settings: Any) -> RemoteSeries:
        """Open a series.

        Parameters
        ----------
        name
            Name of the series; a number becomes text.
        settings
            ``low``, ``high``, ``binary``, ``labels``, ``memory``, ``max_pending``, ``outside``, ``pool`` and ``mode``,
            which are fixed when the series is opened the first time.
        """
        self.request("PUT", f"/v1/series/{quote(str(name), safe='')}", settings)
        return RemoteSeries(self, str(name))

    def batch(self, lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Make many calls in one transaction; lines and answers are those of ``POST /v1/batch``."""
        return self.request("POST", "/v1/batch", {"lines": [dict(line) for line in lines]})["answers"]  # type: ignore[no-any-return]

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send any request of ``/openapi.json``.

        Parameters
        ----------
        method, path
            Method and path of the request.
        body
            Body, as JSON describes it.

        Returns
        -------
        answer
            Body of the answer; a refusal raises `ServiceError`.
        """
        data = None if body is None else json.dumps(body, allow_nan=False, default=_as_json).encode()
        response, answer = self._exchange(method, path, data)
        found = json.loads(answer) if answer.startswith(b"{") else {"error": answer[:200].decode(errors="replace")}
        if response.status >= 400:
            raise ServiceError(response.status, found.get("error", f"status {response.status}"))
        return found

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[http.client.HTTPResponse, bytes]:
        for last in (False, True):
            try:
                self._connection.request(method, self._prefix + path, data, self._headers)
                response = self._connection.getresponse()
                return response, response.read()  # without a size: raises if a part is missing
            except (OSError, http.client.HTTPException) as reason:
                self._connection.close()
                if last:
                    raise ConnectionError(f"expected an answer of {self.url}, got {reason}") from reason
        raise AssertionError


class RemoteSeries:
    """A series of a service, with the verbs of a `Recalibrator`."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self._path = f"/v1/series/{quote(name, safe='')}"

    def predict(self, forecast: object, *, id: Hashable = None, x: Any = None, **times: Any) -> Any:
        """Issue a forecast: a `Forecast`, a probability, or probabilities by label.

        Parameters
        ----------
        forecast
            Quantiles by level, `Normal`, `Ensemble`, a probability, or probabilities by label.
        id
            Name of the round; a call that is repeated under it gets the same answer.
        x
            Features by name.
        times
            ``horizon``, ``issued`` and ``target``, as of `orcast.open`.
        """
        body = {"forecast": _plain(forecast), "id": id, "x": x, "cells": True, **times}
        answer = self.client.request("POST", f"{self._path}/forecasts", body)
        if "cells" in answer:
            return _forecast(answer)
        return answer["forecast"].get("p", answer["forecast"].get("probabilities"))

    def update(self, y: Any, *, id: Hashable = None, known: Any = None) -> dict[str, Any]:
        """Settle a round with its outcome; returns the answer of the service."""
        return self.client.request("POST", f"{self._path}/outcomes", {"y": y, "id": id, "known": known})

    def revise(self, y: Any, *, id: Hashable = None, known: Any = None) -> dict[str, Any]:
        """Correct the outcome of a settled round."""
        return self.client.request("POST", f"{self._path}/revisions", {"y": y, "id": id, "known": known})

    def drop(self, id: Hashable = None) -> dict[str, Any]:
        """Forget a pending round whose outcome will never come."""
        return self.client.request("POST", f"{self._path}/drops", {"id": id})

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rounds."""
        return Guarantee(**self.client.request("GET", self._path)["guarantee"])

    def rounds(self, limit: int = 100) -> Iterator[dict[str, Any]]:
        """Yield the last rounds, the newest first."""
        query = f"?limit={min(limit, 100)}"
        while limit > 0:
            answer = self.client.request("GET", f"{self._path}/rounds{query}")
            yield from answer["rounds"][:limit]
            limit = limit - len(answer["rounds"]) if answer["next"] else 0
            query = f"?limit=100&before={answer['next']}"


def _as_json(value: Any) -> Any:
    """Numbers and arrays of numpy as plain ones, times and dates as text."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(f"expected values that JSON has, numbers of numpy or times, got {short(value)}")


def _forecast(answer: dict[str, Any]) -> Forecast:
    """The published forecast, bit for bit; null stands for infinity."""
    ends = {"left": -math.inf, "right": math.inf, "mass": math.nan}
    cells = {name: [ends[name] if each is None else each for each in answer["cells"][name]] for name in ends}
    stated: dict[str, Any] = {
        name: math.inf if value is None else value for name, value in answer["certificate"].items()
    }
    left, right, mass = (np.array(each, dtype=np.float64) for each in cells.values())
    published = answer.get("published", "recalibrated")
    return Forecast.trusted(left, right, mass, Certificate(**stated) if published == "recalibrated" else None)


def _plain(forecast: object) -> dict[str, Any]:
    """A forecast as the service takes it."""
    if isinstance(forecast, Normal):
        return {"mean": forecast.mean, "sd": forecast.sd}
    if isinstance(forecast, Ensemble):
        return {"members": [float(each) for each in forecast.members]}
    if isinstance(forecast, Quantiles):
        return dict(zip(map(str, forecast.levels.tolist()), forecast.values.tolist(), strict=True))
    if isinstance(forecast, NUMBER) and not isinstance(forecast, bool):
        return {"p": float(forecast)}
    if not isinstance(forecast, Mapping) or not forecast:
        raise TypeError(f"expected quantiles by level, Normal, Ensemble or probabilities, got {short(forecast)}")
    if all(isinstance(key, NUMBER) for key in forecast):
        return {str(float(key)): float(value) for key, value in forecast.items()}
    return {"probabilities": {str(key): float(value) for key, value in forecast.items()}}
