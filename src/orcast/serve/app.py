"""The ASGI application: each call is one transaction of the store, made in a thread beside the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Router

import orcast
from orcast.serve.guard import (
    BODY_BYTES,
    LINES,
    PAGE_BYTES,
    ROUNDS,
    SECONDS,
    SETTINGS,
    WAITING,
    Bodies,
    Guard,
    Handler,
    Metrics,
    Receive,
    Refused,
    Scope,
    Send,
    Tokens,
)
from orcast.serve.messages import ENDPOINTS, Endpoint, decoded, encoded, openapi, whole_number
from orcast.spaces import Labels
from orcast.store import Store, StoredSeries
from orcast.store.calls import (
    LINE,
    OPTIONS,
    SPACE,
    answer,
    checked,
    plain_space,
    space_of,
    verb_of,
    whole_round,
)
from orcast.store.states import Cache
from orcast.store.tables import from_key, key
from orcast.store.times import text_of
from orcast.validation import quietly, short

Answer = dict[str, Any]
Result = TypeVar("Result")
MOST_NAMES = 10_000  # series that are found without a query
UNREACHABLE = ("", ".", "..")  # names that clients remove from a path
REFRESH = {"Refresh": "30"}  # seconds after which a page is loaded again


def app(
    store: Store | str | os.PathLike[str],
    *,
    tokens: Iterable[str] = (),
    body_bytes: int = BODY_BYTES,
    seconds: float = SECONDS,
) -> Handler:
    """Make the service as an ASGI application.

    Parameters
    ----------
    store
        Open store, or its URL, as of `orcast.open`; it is closed when the application ends.
    tokens
        Tokens, one of which every request needs; without any, only requests from this machine are answered.
    body_bytes
        Longest body of a request.
    seconds
        Longest time for reading a body, and for an answer.

    Returns
    -------
    application
        ASGI application, for uvicorn or another server, as one process; several processes may share a store.
    """
    return Service(store, Tokens(tokens), body_bytes, seconds).guarded


@dataclass(frozen=True, slots=True)
class Call:
    """Series, query and body of a request, and the verbs and answers of what was done so far."""

    series: str
    query: QueryParams
    body: bytes
    done: list[tuple[str, Answer]] = field(default_factory=list)

    def read(self, keys: Collection[str], needed: str | None = None) -> Answer:
        """Body with some keys."""
        return checked(self.decoded(), keys, needed)

    def decoded(self) -> Any:
        """Body of any kind."""
        try:
            return decoded(self.body)
        except ValueError as reason:
            raise Refused(400, str(reason)) from None

    def limit(self) -> int:
        """Length of a page of the answer."""
        return whole_number(self.query.get("limit"), "limit", 100, ROUNDS)


class Service:
    """Endpoints of the service; those of `ENDPOINTS` run in the thread of the store."""

    def __init__(self, store: Store | str | os.PathLike[str], tokens: Tokens, body_bytes: int, seconds: float) -> None:
        self.store = store if isinstance(store, Store) else Store(store)
        self.seconds, self.metrics, self._bodies = seconds, Metrics(), Bodies(body_bytes, seconds)
        self._waiting, self._series = 0, Cache[StoredSeries](MOST_NAMES)
        # one thread: the transactions of a store follow each other anyway
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orcast-store")
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="orcast-page")
        self._routes: dict[tuple[str, ...], dict[str, Callable[[Call], Any]]] = {}
        for each in ENDPOINTS:
            answer = partial(self.one, each) if each.answer == "Round" else getattr(self, each.name)
            self._route(each.method, each.path, answer)
        for path, page in (("/", self.index_page), ("/series/{series}", self.series_page), ("/readyz", self.readyz)):
            self._route("GET", path, page)
        description = encoded(openapi(orcast.__version__))
        for path, text in (
            ("/healthz", lambda: Response("ok\n", media_type="text/plain")),
            ("/metrics", lambda: Response(self.metrics.text(), media_type="text/plain; version=0.0.4")),
            ("/openapi.json", lambda: Response(description, media_type="application/json")),
        ):
            self._route("GET", path, text)
        inner = Router(default=self._answer, lifespan=self._lifespan)
        self.guarded = Guard(inner, tokens, self.metrics)

    def _route(self, method: str, path: str, answer: Callable[..., Any]) -> None:
        self._routes.setdefault(tuple(path.split("/")[1:]), {})[method] = answer

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        self._drawing.shutdown(cancel_futures=True)
        self.store.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the route of a request; names of series may contain any character, also a slash."""
        parts, series = _segments(scope)
        found = self._routes.get(parts)
        if found is None:
            raise Refused(404, f"expected a path that /openapi.json describes, got {short(scope['path'])}")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path = scope["route_path"] = "/" + "/".join(parts)
        if method not in found:
            allowed = ", ".join(found)
            text = f"expected {allowed} at {path}, got {short(scope['method'])}"
            raise Refused(405, text, (b"allow", allowed.encode()))
        with _span(method, path):
            if path in ("/healthz", "/metrics", "/openapi.json"):
                await found[method]()(scope, receive, send)  # type: ignore[call-arg]
                return
            body = b"" if method == "GET" else await self._bodies.read(scope, receive)
            call = Call(series, QueryParams(scope["query_string"]), body)
            try:
                made = await self._in_thread(self._thread, lambda: self._made(found[method], call))
            finally:
                self._bodies.held -= len(body)
            if not isinstance(made, bytes):
                made = await self._in_thread(self._drawing, made)
                await Response(made, media_type="text/html", headers=REFRESH)(scope, receive, send)
                return
            await Response(made, media_type="application/json")(scope, receive, send)

    async def _in_thread(self, thread: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        """Result of work in a thread; work that has begun ends even if its request times out."""
        if self._waiting >= WAITING:
            raise Refused(503, f"expected at most {WAITING} waiting requests, got more; send it again later")
        self._waiting += 1
        future = thread.submit(_mapped, work)
        running = asyncio.wrap_future(future)
        running.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(self.seconds):
                return await asyncio.shield(running)
        except TimeoutError:
            future.cancel()
            text = f"expected an answer within {self.seconds:g} s, got none; send the request again"
            raise Refused(503, text) from None

    def _ended(self, running: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not running.cancelled():
            running.exception()  # else asyncio reports an exception that was never retrieved

    def _known(self, name: str) -> StoredSeries:
        """Series that exists."""
        found = self._series.get(name)
        if found is None:
            found = self.store.find(name)
            if found is None:
                raise Refused(404, f"expected a series that was opened (PUT /v1/series/NAME), got {short(name)}")
            self._series.put(name, found, 1)
            self._note(found)
        return found

    def _note(self, series: StoredSeries) -> None:
        alarms = series.alarms
        self.metrics.note(str(series.name), alarms, len(self.store) if alarms else 0)

    # --- series
    def list_series(self, call: Call) -> Answer:
        """Answer with names of series, by pages."""
        after, limit = call.query.get("after") or None, call.limit()
        start = whole_number(after, "after (next of the page before)", 0, len(self.store))
        found = self.store.tables.names(start, limit + 1)
        names = [str(from_key(name)) for _, name, *_ in found[:limit]]
        return {"series": names, "next": str(found[limit - 1][0]) if len(found) > limit else None}

    def open_series(self, call: Call) -> Answer:
        """Open a series, or find it with the same settings."""
        given = call.read((*SPACE, *OPTIONS))
        if call.series in UNREACHABLE:
            raise Refused(422, f"expected a name that a path can hold, got {short(call.series)}")
        for name, most in SETTINGS.items():
            found = len(given[name]) if name == "labels" and name in given else given.get(name, 0)
            if found > most:
                raise Refused(422, f"expected at most {most} as {name} of a series of the service, got {found}")
        options = {name: given.pop(name) for name in OPTIONS if name in given}
        return _series(self.store.series(call.series, space=space_of(given), **options))

    def read_series(self, call: Call) -> Answer:
        """Answer with the guarantee of a series."""
        return _series(self._known(call.series))

    def history(self, call: Call) -> Answer:
        """Answer with the last rounds of a series, by pages."""
        series, limit = self._known(call.series), call.limit()
        if isinstance(series.space, Labels):
            each = sum(len(str(label)) + 24 for label in series.space.labels)
            limit = min(limit, max(1, PAGE_BYTES // each))  # the others are on the next pages
        before, _, event = call.query.get("before", "").partition(",")
        since = whole_number(event or None, "event", 0, 2**53)
        found = series.history(limit + 1, before=before or None, event=since)
        rounds = [whole_round(each) for each in found[:limit]]
        last = found[limit - 1] if len(found) > limit else None
        return {"rounds": rounds, "next": None if last is None else f"{text_of(last.target_at)},{last.opened}"}

    # --- rounds
    def one(self, endpoint: Endpoint, call: Call) -> Answer:
        """Make one call on a series."""
        needed = None if endpoint.name == "drop" else endpoint.keys[0]
        return self._do(call, call.series, endpoint.name, call.read(endpoint.keys, needed))

    def batch(self, call: Call) -> Answer:
        """Make many calls in one transaction."""
        body = call.decoded()
        if type(body) is not dict or body.keys() != {"lines"} or type(body["lines"]) is not list:
            raise Refused(400, 'expected a body {"lines": [...]}, got another')
        if len(body["lines"]) > LINES:
            raise Refused(413, f"expected at most {LINES} lines in a batch, got {len(body['lines'])}")
        named = [line["series"] for line in body["lines"] if type(line) is dict and "series" in line]
        self.store.tables.lock({key(str(name)) for name in named})
        return {"answers": [self._line(call, line, at) for at, line in enumerate(body["lines"], start=1)]}

    def _line(self, call: Call, line: Any, number: int) -> Answer:
        try:
            given = checked(line, LINE, "series")
            return self._do(call, str(given["series"]), verb_of(given), given)
        except (ValueError, TypeError) as reason:
            raise ValueError(f"{reason} (line {number}; nothing of the batch was done)") from None
        except Refused as reason:
            raise Refused(reason.status, f"{reason} (line {number}; nothing of the batch was done)") from None

    def _do(self, call: Call, name: str, verb: str, given: Answer) -> Answer:
        """Make a call, to be counted at the end of the transaction; note alarms that an outcome may have changed."""
        series = self._known(name)
        found = answer(series, verb, given)
        if "repeated" not in found:
            call.done.append((verb, found))
            if "alarm" in found or (verb != "predict" and self.metrics.noted(name)):
                self._note(series)
        return found

    def _made(self, made: Callable[[Call], Any], call: Call) -> Any:
        """Answer, in one transaction, as JSON or as the function that draws a page."""

        def work() -> Any:
            call.done.clear()  # of an attempt that another process was in the way of
            return made(call)

        found = self.store.transact(work)
        self.metrics.count(call.done)
        return encoded(found) if isinstance(found, dict) else found

    # --- operations
    def readyz(self, call: Call) -> bytes:
        """Answer if the store can be used."""
        len(self.store)
        return b'"ready"\n'

    def index_page(self, call: Call) -> Callable[[], str]:
        """Show the series in alarm first."""
        from orcast.serve import pages  # with what draws them, which is slow to import

        return pages.index(self.store, self.metrics.in_alarm())

    def series_page(self, call: Call) -> Callable[[], str]:
        """Show one series."""
        from orcast.serve import pages

        return pages.series(self._known(call.series))


def _mapped(work: Callable[[], Result]) -> Result:
    """Result of work, with errors as what a request is answered."""
    try:
        with quietly():  # warnings are for the process, not for who sends a request
            return work()
    except (OSError, ValueError, TypeError) as reason:
        text = " ".join(str(reason).split())
        if isinstance(reason, OSError):
            raise Refused(503 if isinstance(reason, TimeoutError) else 507, text) from None
        if not text.startswith("expected "):
            raise  # a fault of ours
        raise Refused(422, text) from None


# --- answers


def _series(series: StoredSeries) -> Answer:
    found, guard = series.guarantee, series.guard
    names = ("rounds", "miscalibration", "promised", "held", "excess", "parts", "bounds", "delay", "vacuous")
    told = {
        "series": str(series.name),
        "space": plain_space(series.space),
        "guarantee": {name: getattr(found, name) for name in names},
        "pending": len(series.pending),
        "alarms": [alarm.to_plain(series.when) for alarm in series.alarms],
    }
    return told if guard is None else told | {"guard": guard.to_plain()}


def _segments(scope: Scope) -> tuple[tuple[str, ...], str]:
    """Segments of a path with the name of a series as {series}, and that name."""
    try:
        parts = [unquote(part, errors="strict") for part in scope["raw_path"].decode("ascii").split("/")]
    except UnicodeDecodeError:
        raise Refused(400, "expected a path in UTF-8 with other bytes as %XX, got another") from None
    parts = parts[1:]
    at = 2 if parts[:1] == ["v1"] else 1
    if parts[at - 1 : at] != ["series"] or len(parts) <= at:
        return tuple(parts), ""
    return (*parts[:at], "{series}", *parts[at + 1 :]), parts[at]


def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("orcast")


TRACER = _tracer()


def _span(method: str, path: str) -> Any:
    """Span of OpenTelemetry, named after the route; nothing where it is not installed."""
    return nullcontext() if TRACER is None else TRACER.start_as_current_span(f"{method} {path}")
