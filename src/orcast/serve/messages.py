"""Bodies of requests and answers, and the OpenAPI description that follows from them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from orcast.limits import LIMITS
from orcast.validation import short

Id = str | int | float
Body = TypeVar("Body")


class SeriesRequest(Struct, forbid_unknown_fields=True):
    """Settings of a series, fixed when it is opened; without bounds, labels or binary it is any number."""

    low: float | None = None
    high: float | None = None
    binary: bool = False
    labels: list[str] | None = None
    memory: float | None = None
    max_pending: int | None = None
    outside: str | None = None
    pool: bool | None = None
    mode: str | None = None


class ForecastRequest(Struct, forbid_unknown_fields=True):
    """A base forecast: quantiles by level, mean and sd, members, p, or probabilities by label."""

    forecast: dict[str, Any]
    id: Id | None = None
    x: dict[str, Any] | None = None
    horizon: str | int | float | None = None
    issued: str | None = None
    target: str | None = None
    levels: list[float] | None = None
    cells: bool = False


class OutcomeRequest(Struct, forbid_unknown_fields=True):
    """The outcome of a round."""

    y: Any
    id: Id | None = None
    known: str | None = None


class DropRequest(Struct, forbid_unknown_fields=True):
    """A round whose outcome will never come."""

    id: Id | None = None


class Line(ForecastRequest, kw_only=True, forbid_unknown_fields=True):
    """One call of a batch: exactly one of forecast, y, revise and drop."""

    series: str
    forecast: dict[str, Any] | None = None  # type: ignore[assignment]
    y: Any = UNSET
    revise: Any = UNSET
    drop: bool = False
    known: str | None = None


class BatchRequest(Struct, forbid_unknown_fields=True):
    """Calls that happen together or not at all."""

    lines: list[Line]


class Certificate(Struct):
    """Certificate of a forecast, known before its outcome; null stands for infinity."""

    holds: bool
    worst_next: float | None
    allowed: float | None
    bound: float
    promised: float
    excess: float


class RoundAnswer(Struct, omit_defaults=True):
    """A round: its published forecast, and its outcome once it is known, with the alarms that this one raised.

    Where the base forecast is published, the certificate is that of the recalibrated one.
    """

    series: str
    id: Any
    status: str
    issued: str
    target: str
    forecast: dict[str, Any]
    certificate: Certificate
    published: str = "recalibrated"
    mean: float | None = None
    sd: float | None = None
    base: dict[str, Any] | None = None
    quantiles: dict[str, float] | None = None
    cells: dict[str, list[float]] | None = None
    horizon: Any = None
    y: Any = None
    known: str | None = None
    guarantee: dict[str, Any] | None = None
    alarm: list[dict[str, Any]] = []
    revisions: int = 0
    repeated: bool = False
    evicted: list[Any] = []


class SeriesAnswer(Struct, omit_defaults=True):
    """A series: its space, its guarantee, the alarms on its forecasts, and its guard unless its mode is direct."""

    series: str
    space: dict[str, Any]
    guarantee: dict[str, Any]
    pending: int
    alarms: list[dict[str, Any]]
    guard: dict[str, Any] | None = None


class SeriesList(Struct):
    """Names of series, in order; `next` continues the list."""

    series: list[str]
    next: str | None = None


class RoundList(Struct):
    """Rounds of a series, the newest first; `next` continues the list."""

    rounds: list[RoundAnswer]
    next: str | None = None


class BatchAnswer(Struct):
    """Answers of a batch, in its order."""

    answers: list[RoundAnswer]


class Error(Struct):
    """A refused request, which changed nothing."""

    error: str


class Endpoint(NamedTuple):
    """A call of the service, as OpenAPI describes it."""

    method: str
    path: str
    name: str
    summary: str
    body: type[Struct] | None
    answer: type[Struct]
    query: tuple[str, ...] = ()


ENDPOINTS = (
    Endpoint("GET", "/v1/series", "list_series", "List the series", None, SeriesList, ("after", "limit")),
    Endpoint("PUT", "/v1/series/{series}", "open_series", "Open a series", SeriesRequest, SeriesAnswer),
    Endpoint("GET", "/v1/series/{series}", "read_series", "Read the guarantee", None, SeriesAnswer),
    Endpoint("POST", "/v1/series/{series}/forecasts", "predict", "Issue a forecast", ForecastRequest, RoundAnswer),
    Endpoint("POST", "/v1/series/{series}/outcomes", "update", "Settle a round", OutcomeRequest, RoundAnswer),
    Endpoint("POST", "/v1/series/{series}/revisions", "revise", "Correct an outcome", OutcomeRequest, RoundAnswer),
    Endpoint("POST", "/v1/series/{series}/drops", "drop", "Drop a round", DropRequest, RoundAnswer),
    Endpoint(
        "GET", "/v1/series/{series}/rounds", "history", "Last rounds", None, RoundList, ("before", "limit", "levels")
    ),
    Endpoint("POST", "/v1/batch", "batch", "Many calls in one transaction", BatchRequest, BatchAnswer),
)


def decoded(body: bytes, kind: type[Body]) -> Body:
    """Decode the body of a request; an error says what is wrong with it.

    >>> decoded(b'{"id": 3}', OutcomeRequest)
    Traceback (most recent call last):
    ValueError: expected a body that fits OutcomeRequest (see /openapi.json), got another: object missing ...
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except RecursionError:
        raise ValueError("expected a body of moderate depth, got one that is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        text = str(reason)
        what = f"a body that fits {kind.__name__} (see /openapi.json), got another"
        raise ValueError(f"expected {what}: {text[:1].lower()}{text[1:200]}") from None


def encoded(answer: Any) -> bytes:
    """Answer as JSON; numbers that JSON does not have become null."""
    return msgspec.json.encode(answer)


def one_call(line: Line, number: int) -> str:
    """Name of the only call of a line of a batch."""
    given = {"predict": line.forecast is not None, "update": not isinstance(line.y, UnsetType)}
    given |= {"revise": not isinstance(line.revise, UnsetType), "drop": line.drop}
    calls = [name for name, there in given.items() if there]
    if len(calls) != 1:
        raise ValueError(f"expected one of forecast, y, revise and drop in line {number}, got {len(calls)} of them")
    return calls[0]


def whole_number(text: str | None, what: str, usual: int, most: int) -> int:
    """Whole number of a query, from 1 to a cap."""
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 16 or not 1 <= int(text) <= most:
        raise ValueError(f"expected a whole number from 1 to {most} as {what}, got {short(text)}")
    return int(text)


def openapi(version: str) -> dict[str, Any]:
    """OpenAPI description of the service."""
    kinds: set[type[Struct]] = {
        Error,
        *(each.body for each in ENDPOINTS if each.body),
        *(each.answer for each in ENDPOINTS),
    }
    order = sorted(kinds, key=lambda kind: kind.__name__)
    references, components = msgspec.json.schema_components(order, ref_template="#/components/schemas/{name}")
    schema = dict(zip(order, references, strict=True))
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema)
    return {
        "openapi": "3.1.0",
        "info": {"title": "orcast", "version": version, "license": {"name": "MIT"}},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schema: dict[Any, Any]) -> dict[str, Any]:
    named = [("path", "series", True)] if "{series}" in endpoint.path else []
    named += [("query", name, False) for name in endpoint.query]
    text = {"type": "string", "maxLength": LIMITS.id_characters}
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [{"in": place, "name": name, "required": must, "schema": text} for place, name, must in named],
        "responses": {
            "200": {"description": "Done", **_content(schema[endpoint.answer])},
            "4XX": {"description": "Refused; nothing changed", **_content(schema[Error])},
            "5XX": {"description": "Not done; send the request again", **_content(schema[Error])},
        },
    }
    if endpoint.body is not None:
        found["requestBody"] = {"required": True, **_content(schema[endpoint.body])}
    return found


def _content(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
