"""`orcast serve`: the HTTP service."""

from __future__ import annotations

import argparse
import os

from orcast.cli.common import Parts, need, part
from orcast.validation import number

DESCRIPTION = """\
Serve a store over HTTP: forecasts, outcomes, revisions, guarantees, a page at / and metrics at /metrics.
The calls are described at /openapi.json."""

EXAMPLES = """\
  orcast serve --store sqlite:///wind.db                      on this machine alone, port 8000
  orcast serve --store postgresql://host/forecasts --host 0.0.0.0 --tokens tokens.txt
"""


def add(parts: Parts) -> None:
    """Add the part to the command."""
    serve = part(parts, "serve", help="serve a store over HTTP", description=DESCRIPTION, examples=EXAMPLES)
    serve.add_argument("--store", required=True, metavar="URL", help="sqlite:///FILE or postgresql://...")
    serve.add_argument("--host", default="127.0.0.1", help="address of the service (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    serve.add_argument(
        "--tokens", metavar="FILE", help="tokens, a line each (default: ORCAST_TOKENS, separated by commas)"
    )
    serve.add_argument(
        "--body-bytes", type=int, metavar="N", default=8 * 2**20, help="longest body of a request (default: 8 MiB)"
    )
    serve.add_argument("--sync", action="store_true", help="commits of SQLite survive a loss of power; slower")
    serve.add_argument(
        "--seconds", type=float, metavar="S", default=30.0, help="longest time for an answer (default: 30)"
    )
    serve.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes; requests that have begun are answered first."""
    need("serve", "msgspec", "prometheus_client", "starlette", "uvicorn")
    import gc
    import logging

    import uvicorn

    from orcast.serve.app import app
    from orcast.serve.guard import WAITING, JsonFormatter, check_free, check_host, read_tokens
    from orcast.store import open as open_store

    if not 0 <= options.port < 2**16:
        raise ValueError(f"expected a number from 0 to 65535 as --port, got {options.port}")
    options.seconds = number(options.seconds, "--seconds", 0.001, 86_400.0)
    tokens = read_tokens(options.tokens, os.environ.get("ORCAST_TOKENS"))
    check_host(options.host, tokens)
    check_free(options.host, options.port)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    store = open_store(options.store, sync=options.sync)
    service = app(store, tokens=tokens, body_bytes=options.body_bytes, seconds=options.seconds)
    gc.freeze()  # what was imported stays, so that collections are short
    uvicorn.run(
        service,
        host=options.host,
        port=options.port,
        http="h11",  # which caps the head of a request
        ws="none",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=WAITING,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(options.seconds),
    )
    return 0
