"""A real `orcast serve` in a process of its own, and requests to it."""

import http.client
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any


class Served:
    """The service on a free port; `log` has its lines."""

    def __init__(self, store: str, *arguments: str, file_bytes: int | None = None) -> None:
        command = [sys.executable, "-m", "orcast", "serve", "--store", store, "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
        if file_bytes is not None:
            limit = file_bytes, resource.RLIM_INFINITY
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, limit)
        self.log: list[str] = []
        for line in self.process.stderr or ():
            self.log.append(line)
            if found := re.search(r"running on http://[^ ]*:(\d+) ", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError("".join(self.log))
        self.url = f"http://127.0.0.1:{self.port}"
        self._reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr or ()), daemon=True)
        self._reader.start()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """End the process; returns its status."""
        self.process.send_signal(how)
        status = self.process.wait(60)
        self._reader.join()
        if self.process.stderr:
            self.process.stderr.close()
        return status

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        """Status, body and headers of an answer; JSON is decoded."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, data, given)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        kind = response.headers.get("content-type", "")
        return response.status, json.loads(text) if "json" in kind and text else text.decode(), response.headers
