"""Malformed requests and hostile names: each is answered, and the service goes on."""

import random
import socket
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from malformed import CALLS, malformed
from serving import Served

import orcast as oc
from pages import NASTY


def memory(served: Served) -> int:
    """Largest memory that the process has had, in MB."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1000


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_requests_get_a_clear_answer(served: Served, count: int) -> None:
    rng, statuses = random.Random(count), Counter[int]()
    with oc.Client(served.url) as client:
        wind, _ = client.series("wind", low=0, high=100), client.series("lab", labels=["a", "b"])
        wind.predict(oc.Normal(5, 1), id="old", issued="2026-03-03")
        wind.update(5.0, id="old", known="2026-03-03")
        for _ in range(count):
            request = malformed(rng)
            status, told, _ = served.ask(*request)
            statuses[status] += 1
            assert status < 500, (request, told)
            assert status == 200 or told["error"].startswith("expected "), (request, told)
        assert sum(statuses[status] for status in statuses if status >= 400) > count / 2
        assert wind.predict(oc.Normal(5, 1), id="new").certificate.holds
    assert memory(served) < 1000
    assert not [line for line in served.log if "trace" in line]


def test_bytes_that_are_not_http_do_not_stop_the_service(served: Served) -> None:
    rng = random.Random(1)
    head = b"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{}\n"
    for k in range(40):
        text = bytes(rng.randbytes(50)) if k % 2 else head[: k * 2] + rng.randbytes(3) + head[k * 2 :]
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(text)
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.settimeout(10)
        try:
            for _ in range(2000):
                connection.sendall(b"A" * 1000)
            assert b" 400 " in connection.recv(1000)
        except OSError:
            pass  # the service hung up
    assert served.ask("GET", "/readyz")[0] == 200
    assert memory(served) < 1000


def test_large_bodies_at_the_same_time_are_capped(served: Served) -> None:
    head = (
        f"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {8 * 2**20}"
    )
    connections = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(12)]
    try:
        for connection in connections:
            connection.settimeout(20)
            connection.sendall(f"{head}\r\n\r\n".encode() + b"[" * (8 * 2**20 - 10))
        connections[0].sendall(b"]" * 10)
        assert b" 400 " in connections[0].recv(100)
    except OSError:
        pass  # one that is over the cap is closed
    finally:
        for connection in connections:
            connection.close()
    assert served.ask("GET", "/readyz")[0] == 200
    assert memory(served) < 1000


def test_hostile_names_are_text_on_pages(served: Served) -> None:
    names = [each for each in NASTY if each and "\ud800" not in each and len(each) < 2000]
    with oc.Client(served.url) as client:
        for name in names:
            series = client.series(name, labels=[name, "other"])
            for t in range(5):
                series.predict({name: 0.5, "other": 0.5}, id=t)
                series.update(name, id=t)
    for page in ("/", *(f"/series/{quote(name, safe='')}" for name in names)):
        status, html, headers = served.ask("GET", page)
        assert status == 200
        assert "<script" not in html.lower()
        assert "<img" not in html.lower()
        assert "default-src 'none'" in headers["content-security-policy"]


def test_calls_of_the_mutator_are_right_before_they_are_spoiled(served: Served) -> None:
    with oc.Client(served.url) as client:
        client.series("wind", low=0, high=100).predict(oc.Normal(5, 1), id="gone")
    statuses: list[Any] = [served.ask(*call)[0] for call in CALLS]
    assert statuses[:-1].count(200) >= len(CALLS) - 3
