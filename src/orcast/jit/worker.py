"""The process that compiles entry kernels into the cache: reads what is wanted, a line each, and says how far it is.

It ends when nobody writes to it any more, also in the middle of a kernel.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from importlib import import_module
from typing import Any

from orcast.jit import cache
from orcast.jit.registry import reached_from
from orcast.jit.signature import key_of

# What it ends with if another process is compiling.
BUSY = 3


def main() -> None:
    """Serve, and end at once: a thread waits for what is written to this process, and would not let it go."""
    code = 1
    try:
        code = serve()
    finally:
        os._exit(code)


def serve() -> int:
    """Compile what is asked for, until there is nobody to ask."""
    if hasattr(os, "nice"):
        os.nice(5)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    with cache.lock(wait=False) as free:
        if not free:
            return BUSY
        cache.remove_partial_files()
        from orcast.jit import compiler

        dispatchers: dict[str, Any] = {}
        while True:
            request = requests.get()
            path = f"{request['module']}.{request['name']}"
            key = key_of(path, request["signature"])
            try:
                entry = getattr(import_module(request["module"]), request["name"])
                if path not in dispatchers:
                    dispatchers[path] = compiler.new_entry(entry.source)
                report = _Report(len(reached_from(entry.source)))
                cache.write(key, compiler.compile_entry(dispatchers[path], request["signature"], report.one_more))
            except Exception as reason:
                text = " ".join(f"{type(reason).__name__}: {reason}".split())[:300]
                _tell({"key": key, "reason": text})
            else:
                _tell({"key": key})


class _Report:
    """Says how many kernels are compiled, of how many."""

    def __init__(self, of: int) -> None:
        self.done, self.of, self.began = 0, of, time.time()
        _tell({"began": self.began, "done": 0, "of": of})

    def one_more(self) -> None:
        self.done = min(self.done + 1, self.of)
        _tell({"began": self.began, "done": self.done, "of": self.of})


def _read(requests: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    os._exit(0)


def _tell(message: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        os._exit(0)
