"""Endpoints of the service, and the OpenAPI description that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from orcast.limits import LIMITS
from orcast.store.calls import FORMS, JSON, LINE, OPTIONS, SPACE, TAKES, TYPES
from orcast.validation import short

OBJECT, ARRAY, TEXT, NUMBER = ({"type": kind} for kind in ("object", "array", "string", "number"))
ROUND = {
    "series": TEXT,
    "id": {"type": ["string", "number"]},
    "status": {"enum": ["pending", "settled", "dropped"]},
    "issued": TEXT,
    "target": TEXT,
    "horizon": {"type": ["string", "number"]},
    "repeated": {"type": "boolean", "description": "The call came before, and changed nothing"},
    "forecast": {"type": "object", "description": "The published forecast"},
    "mean": NUMBER,
    "sd": NUMBER,
    "quantiles": OBJECT,
    "sorted": {"type": "boolean", "description": "The quantiles of the base forecast were sorted"},
    "cells": {"type": "object", "description": "left, right and mass of each cell"},
    "certificate": {"type": "object", "description": "Of the recalibrated forecast; null stands for infinity"},
    "published": {"enum": ["base"], "description": "The base forecast was published, by the mode of the series"},
    "evicted": {"type": "array", "description": "Ids of the pending rounds that made way for this one"},
    "y": {},
    "known": TEXT,
    "guarantee": {"type": "object", "description": "After the outcome"},
    "alarm": {"type": "array", "description": "Alarms that the outcome raised"},
    "revisions": {"type": "integer"},
    "dropped": {"type": "boolean"},
}
SERIES = {"series": TEXT, "space": OBJECT, "guarantee": OBJECT, "pending": {"type": "integer"}, "alarms": ARRAY}
_A_ROUND = {"$ref": "#/components/schemas/Round"}
# Properties of the answers.
ANSWERS: dict[str, dict[str, Any]] = {
    "Round": ROUND,
    "Series": SERIES | {"guard": {"type": "object", "description": "Unless the mode is direct"}},
    "SeriesList": {"series": {"type": "array", "items": TEXT}, "next": {"type": ["string", "null"]}},
    "RoundList": {"rounds": {"type": "array", "items": _A_ROUND}, "next": {"type": ["string", "null"]}},
    "Batch": {"answers": {"type": "array", "items": _A_ROUND}},
    "Error": {"error": TEXT},
}


class Endpoint(NamedTuple):
    """A call of the service, with the keys of its body, and its answer."""

    method: str
    path: str
    name: str
    summary: str
    keys: tuple[str, ...]
    answer: str
    query: tuple[str, ...] = ()


ENDPOINTS = (
    Endpoint("GET", "/v1/series", "list_series", "List the series", (), "SeriesList", ("after", "limit")),
    Endpoint("PUT", "/v1/series/{series}", "open_series", "Open a series", (*SPACE, *OPTIONS), "Series"),
    Endpoint("GET", "/v1/series/{series}", "read_series", "Read the guarantee", (), "Series"),
    Endpoint("POST", "/v1/series/{series}/forecasts", "predict", "Issue a forecast", TAKES["predict"], "Round"),
    Endpoint("POST", "/v1/series/{series}/outcomes", "update", "Settle a round", TAKES["update"], "Round"),
    Endpoint("POST", "/v1/series/{series}/revisions", "revise", "Correct an outcome", TAKES["update"], "Round"),
    Endpoint("POST", "/v1/series/{series}/drops", "drop", "Drop a round", ("id",), "Round"),
    Endpoint("GET", "/v1/series/{series}/rounds", "history", "Last rounds", (), "RoundList", ("before", "limit")),
    Endpoint("POST", "/v1/batch", "batch", "Many calls in one transaction", ("lines",), "Batch"),
)


def decoded(body: bytes) -> Any:
    """Decode the body of a request; an error says what is wrong with it.

    >>> decoded(b'{"id": ')
    Traceback (most recent call last):
    ValueError: expected a body of JSON, got another: Input data was truncated
    """
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise ValueError("expected a body of moderate depth, got one that is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        text = str(reason)
        raise ValueError(f"expected a body of JSON, got another: {text[:200]}") from None


def encoded(answer: Any) -> bytes:
    """Answer as JSON; numbers that JSON does not have become null."""
    return msgspec.json.encode(answer)


def whole_number(text: str | None, what: str, usual: int, most: int) -> int:
    """Whole number of a query, from 1 to a cap."""
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 16 or not 1 <= int(text) <= most:
        raise ValueError(f"expected a whole number from 1 to {most} as {what}, got {short(text)}")
    return int(text)


def openapi(version: str) -> dict[str, Any]:
    """OpenAPI description of the service."""
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    schemas = {name: {"type": "object", "properties": properties} for name, properties in ANSWERS.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "orcast", "version": version, "license": {"name": "MIT"}},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas | {"Line": _body(LINE)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    named = [("path", "series", True)] if "{series}" in endpoint.path else []
    named += [("query", name, False) for name in endpoint.query]
    text = {"type": "string", "maxLength": LIMITS.id_characters}
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [{"in": place, "name": name, "required": must, "schema": text} for place, name, must in named],
        "responses": {
            "200": {"description": "Done", **_content(endpoint.answer)},
            "4XX": {"description": "Refused; nothing changed", **_content("Error")},
            "5XX": {"description": "Not done; send the request again", **_content("Error")},
        },
    }
    if endpoint.name == "batch":
        lines = {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}
        found["requestBody"] = {"required": True, **_json({"type": "object", "properties": {"lines": lines}})}
    elif endpoint.keys:
        found["requestBody"] = {"required": True, **_json(_body(endpoint.keys))}
    return found


def _body(keys: Iterable[str]) -> dict[str, Any]:
    """Schema of a call with some keys."""
    properties: dict[str, Any] = {
        key: {"type": [*map(JSON.get, TYPES[key]), "null"]} if TYPES[key] else {} for key in keys
    }
    if "forecast" in properties:
        properties["forecast"] = {"type": "object", "description": FORMS}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _content(name: str) -> dict[str, Any]:
    return _json({"$ref": f"#/components/schemas/{name}"})


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
