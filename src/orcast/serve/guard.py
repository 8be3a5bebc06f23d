"""Checks before every request: tokens, caps on bodies and times; afterwards metrics and one line of log."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import json
import logging
import socket
import time
from collections import Counter as Counted
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from orcast.limits import LIMITS
from orcast.monitors import SIDES, Alarm, false_discovery_alarms
from orcast.serve.messages import encoded

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("orcast.serve")
# Answered without a token: they tell nothing about the series.
OPEN = ("/healthz", "/readyz")
LOCAL = ("localhost", "127.0.0.1", "[::1]")
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0)
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


# Caps: bytes of a body, and of all bodies of requests that are not answered yet; lines of a batch; rounds, or names of
# series, of an answer; bytes of the forecasts of labels in an answer; labels, and pending rounds, of a series;
# requests that may wait for the store; seconds for reading a body, and for an answer.
BODY_BYTES, ALL_BYTES = 8 * 2**20, 64 * 2**20
LINES, ROUNDS, PAGE_BYTES, WAITING, SECONDS = 10_000, 1_000, 4 * 2**20, 1_000, 30.0
SETTINGS = {"labels": 256, "max_pending": 10_000}


class Refused(Exception):
    """A request that is answered with a status and a message."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status, self.headers = status, headers


class Metrics:
    """Metrics of one application; labels are routes, methods and statuses, never names of series or ids."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        names = ("route", "method", "status")
        self.requests = counter("orcast_requests", "Requests by route and status.", names)
        what = "orcast_request_seconds", "Time to answer.", ("route",)
        self.seconds = Histogram(*what, registry=registry, buckets=BUCKETS)
        self.rounds = counter("orcast_rounds", "Calls that changed a series.", ("call",))
        self.uncertified = counter("orcast_forecasts_uncertified", "Forecasts whose certificate did not hold.")
        self.exceeded = counter("orcast_bound_exceeded", "Outcomes after which a series exceeded its bound.")
        told = "Alarms on the base forecast (input) or ours (output): ever miscalibrated, or changed."
        self.alarms = counter("orcast_alarms", told, ("side", "question"))
        told = "Series in alarm among those used since the start (e-BH: a share of at most 5% is false)."
        standing = Gauge("orcast_series_in_alarm", told, ("side",), registry=registry)
        self.evidence: dict[str, dict[str, float]] = {side: {} for side in SIDES}
        self._series = 0
        for side in self.evidence:
            standing.labels(side).set_function(partial(self._standing, side))

    def count(self, done: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Count calls that changed a series, with their answers."""
        for verb, times in Counted(verb for verb, _ in done).items():
            self.rounds.labels(verb).inc(times)
        for verb, answer in done:
            for alarm in answer.get("alarm", ()):
                self.alarms.labels(alarm["side"], alarm["question"]).inc()
            if verb == "predict" and not answer["certificate"]["holds"]:
                self.uncertified.inc()
            told = answer.get("guarantee")
            if told is not None and told["miscalibration"] > told["promised"] + told.get("excess", 0.0):
                self.exceeded.inc()

    def noted(self, series: str) -> bool:
        """True if a series has or had an alarm."""
        return any(series in found for found in self.evidence.values())

    def in_alarm(self) -> list[str]:
        """Series with an alarm that has not ended, the most evidence first."""
        found = [(-value, name) for side in self.evidence.values() for name, value in side.items() if value]
        return list(dict.fromkeys(name for _, name in sorted(found)))

    def note(self, series: str, alarms: Iterable[Alarm], total: int) -> None:
        """Take over the alarms of a series; `total` is the number of series."""
        self._series = max(self._series, total)
        for found in self.evidence.values():
            found.pop(series, None)
        for alarm in alarms:
            # an alarm that has ended may come back
            found, now = self.evidence[alarm.side or "input"], alarm.evidence if alarm.standing else 0.0
            found[series] = max(now, found.get(series, 0.0))

    def _standing(self, side: str) -> float:
        return float(false_discovery_alarms(list(self.evidence[side].values()), total=self._series).sum())

    def text(self) -> bytes:
        """Metrics in the format of Prometheus."""
        return generate_latest(self.registry)


class Tokens:
    """Tokens that may use the service; without any, only this machine may."""

    def __init__(self, tokens: Iterable[str]) -> None:
        given = [token.strip() for token in tokens]
        for token in given:
            if not 16 <= len(token) <= 1_000 or not token.isascii() or not token.isprintable() or " " in token:
                raise ValueError("expected tokens of 16 to 1000 printable ASCII characters, got another one")
        # of equal length, so that the comparison takes as long for every guess
        self._digests = [sha256(token.encode()).digest() for token in given]

    def check(self, scope: Scope) -> None:
        """Refuse a request without a token, or from elsewhere if there are none."""
        headers = dict(scope["headers"])
        if not self._digests:
            self._check_local(scope.get("client"), headers)
            return
        digest = sha256(_token(headers.get(b"authorization", b""))).digest()
        # all are compared, so that the time does not tell which one was near
        if not sum(hmac.compare_digest(digest, each) for each in self._digests):
            text = "expected an Authorization header with a token of this service (Bearer, or Basic with any user name)"
            raise Refused(401, text, (b"www-authenticate", b'Basic realm="orcast", charset="UTF-8"'))

    @staticmethod
    def _check_local(client: Any, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        # a page of another site can reach this machine under a name of its own; a proxy on it brings others
        proxied = any(header in headers for header in FORWARDED)
        if client is None or not _is_loopback(client[0]) or name not in LOCAL or proxied:
            raise Refused(403, "expected a request from this machine to localhost, since the service has no tokens")


def _token(header: bytes) -> bytes:
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() != b"basic":
        return b""
    try:
        return base64.b64decode(rest, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


@lru_cache(64)
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Bodies:
    """Bodies of requests, with caps on each and on all that are in memory."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds, self.held = most, seconds, 0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Whole body of a request; it counts in `held` until the caller subtracts it."""
        kind = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise Refused(415, "expected a body of content type application/json, got another")
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "expected a whole body, got a part of one")
                    more, part = message.get("more_body", False), message.get("body", b"")
                    if len(body) + len(part) > self.most:
                        raise Refused(413, f"expected a body of at most {self.most} bytes, got a longer one")
                    if self.held + len(part) > ALL_BYTES:
                        raise Refused(503, "expected fewer large bodies at the same time; send it again later")
                    body += part
                    self.held += len(part)
        except BaseException as reason:
            self.held -= len(body)
            if isinstance(reason, TimeoutError):
                raise Refused(408, f"expected the whole body within {self.seconds:g} s, got a part") from None
            raise
        return bytes(body)


class Guard:
    """ASGI middleware that checks tokens, turns refusals into answers, and notes every request."""

    def __init__(self, inner: Handler, tokens: Tokens, metrics: Metrics) -> None:
        self.inner, self.tokens, self.metrics = inner, tokens, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a message."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        start, status, begun = time.perf_counter(), 500, False

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            if scope["path"] not in OPEN:
                self.tokens.check(scope)
            await self.inner(scope, receive, noted)
        except Refused as reason:
            await refuse(noted, reason)
        except Exception:
            log.exception("a request failed")
            if begun:
                raise
            await refuse(noted, Refused(500, "the request failed by a fault of the service; its log has the reason"))
        finally:
            self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route_path", "other")  # a path of ours, so that labels are few
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT") else "other"
        self.metrics.requests.labels(route, method, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if log.isEnabledFor(logging.INFO):
            fields = {"method": method, "path": scope["path"][:200], "status": status, "ms": round(1e3 * seconds, 3)}
            log.info("request", extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record; control characters of paths and messages are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Record as JSON."""
        line = {"time": round(record.created, 3), "level": record.levelname, "logger": record.name}
        line |= {"message": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


async def refuse(send: Send, reason: Refused) -> None:
    """Answer with a status and a message."""
    body = encoded({"error": str(reason)})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *reason.headers]
    await send({"type": "http.response.start", "status": reason.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def check_host(host: str, tokens: Iterable[str]) -> None:
    """Refuse a host that other machines reach without tokens."""
    if not [*tokens] and host != "localhost" and not _is_loopback(host):
        raise ValueError(
            f"expected tokens for --host {host} (--tokens FILE, or ORCAST_TOKENS), got none; without tokens the "
            "service answers on 127.0.0.1 alone"
        )


def check_free(host: str, port: int) -> None:
    """Refuse an address that cannot be had, before the store is opened."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        socket.create_server(address, family=family).close()
    except OSError as reason:
        raise OSError(f"expected a free address as --host and --port, got {host}:{port} ({reason.strerror})") from None


def read_tokens(path: str | None, environment: str | None) -> list[str]:
    """Tokens of a file, a line each, or of an environment variable, separated by commas."""
    if path is not None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(LIMITS.line_bytes)
        except OSError as reason:
            raise OSError(f"expected a file with tokens as --tokens, got {path} ({reason.strerror})") from None
        found = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not found:
            raise ValueError(f"expected at least one token in {path}, got none")
        return found
    return [each for each in (environment or "").split(",") if each.strip()]
