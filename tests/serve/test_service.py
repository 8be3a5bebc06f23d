"""The HTTP service answers as recalibrators do, checks tokens and sizes, and stops without losing a request."""

import base64
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from serving import Served

import orcast as oc
from orcast.serve import pages as web_pages
from orcast.serve.guard import Tokens, check_host, read_tokens
from pages import NASTY

TOKEN = "0123456789abcdef-one"
QUANTILES = {"0.1": 20, "0.5": 50, "0.9": 80}
_names = count()


@pytest.fixture
def name() -> str:
    return f"series {next(_names)}"


CASES: dict[str, tuple[dict[str, Any], Any, Callable[[int], Any], Callable[[int], Any]]] = {
    "quantiles": ({"low": 0, "high": 100}, oc.Interval(0, 100), lambda t: {0.1: 20 + t, 0.5: 50, 0.9: 80},
                  lambda t: 40 + t),
    "shadow": ({"low": 0, "high": 100, "mode": "shadow"}, oc.Interval(0, 100), lambda t: oc.Normal(t, 5),
               lambda t: 40 + t),
    "normal": ({}, oc.Line(), lambda t: oc.Normal(t, 1 + t % 3), lambda t: 1.5 * t),
    "members": ({"low": 0}, oc.HalfLine(0), lambda t: oc.Ensemble([t, t + 4, t + 1]), lambda t: t + 2),
    "event": ({"binary": True}, oc.Binary(), lambda t: 0.2 + t / 50, lambda t: t % 2),
    "labels": ({"labels": ["a", "b"]}, oc.Labels(["a", "b"]), lambda t: {"a": 0.4, "b": 0.6}, lambda t: "ab"[t % 2]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_client_answers_as_a_recalibrator(served: Served, case: str) -> None:
    settings, space, forecast, outcome = CASES[case]
    recal = oc.Recalibrator(space, mode=settings.get("mode", "direct"))
    with oc.Client(served.url) as client:
        series = client.series(case, **settings)
        for t in range(20):
            p, q = series.predict(forecast(t), id=t, horizon=1), recal.predict(forecast(t), id=t)
            if isinstance(q, oc.Forecast):
                assert all(np.array_equal(getattr(p, part), getattr(q, part)) for part in ("left", "right", "mass"))
                assert p.certificate == q.certificate
            else:
                assert p == (q.probability() if case == "event" else q.to_dict())
            if t % 5 == 4:
                series.drop(t)
                recal.drop(t)
            elif t % 3:
                series.update(outcome(t), id=t)
                recal.update(outcome(t), id=t)
        assert client.request("GET", f"/v1/series/{case}").get("guard", {}).get("publishes") == (
            "base" if case == "shadow" else None
        )
        found, own = series.guarantee, recal.guarantee
        assert (found.rounds, found.miscalibration, found.parts) == (own.rounds, own.miscalibration, own.parts)
        assert str(found) == str(own)
        series.revise(outcome(8), id=1)
        rounds = list(series.rounds(15))
        assert [each["id"] for each in rounds] == [*range(19, 4, -1)]
        assert next(each for each in series.rounds() if each["id"] == 1)["revisions"] == 1


def test_client_takes_numpy_and_times(served: Served) -> None:
    with oc.Client(served.url) as client:
        wind, rain = client.series(7, low=np.int64(0), high=100), client.series("np rain", binary=np.True_)
        issued = datetime(2026, 3, 3)
        for id in (np.int64(3), issued, np.datetime64("2026-03-04"), 2.5):
            wind.predict(oc.Normal(50, 5), id=id, x={"wind": np.float32(3)}, issued=issued, target=issued.date())
            wind.update(np.float32(40), id=id, known=issued)
        assert [each["id"] for each in wind.rounds()] == [2.5, "2026-03-04", "2026-03-03T00:00:00", 3]
        assert rain.predict(np.float32(0.5), id=1) == pytest.approx(0.5)
        assert rain.update(np.True_, id=1)["y"] == 1
        with pytest.raises(TypeError, match="expected values that JSON has"):
            wind.predict(oc.Normal(50, 5), id=1j)  # type: ignore[arg-type]


def test_repeated_calls_change_nothing(served: Served, name: str) -> None:
    path = f"/v1/series/{name.replace(' ', '%20')}"
    assert served.ask("PUT", path, {"low": 0, "high": 100})[1] == served.ask("PUT", path, {"low": 0, "high": 100})[1]
    first = served.ask("POST", f"{path}/forecasts", {"id": 1, "forecast": QUANTILES})
    again = served.ask("POST", f"{path}/forecasts", {"id": 1, "forecast": QUANTILES})
    assert again[0] == 200
    assert again[1] == first[1] | {"repeated": True}
    status, told, _ = served.ask("POST", f"{path}/forecasts", {"id": 1, "forecast": QUANTILES | {"0.1": 21}})
    assert (status, "another forecast for 1" in told["error"]) == (422, True)
    settled = [served.ask("POST", f"{path}/outcomes", {"id": 1, "y": 44})[1] for _ in range(2)]
    assert settled[1] == settled[0] | {"repeated": True}
    assert served.ask("POST", f"{path}/outcomes", {"id": 1, "y": 45})[0] == 422
    assert served.ask("GET", path)[1]["guarantee"]["rounds"] == 1
    assert served.ask("PUT", path, {"low": 0, "high": 99})[0] == 422


def test_batch_happens_as_a_whole_or_not_at_all(served: Served, name: str) -> None:
    with oc.Client(served.url) as client:
        series = client.series(name, low=0, high=100)
        lines = [{"series": name, "id": t, "forecast": {"mean": 50, "sd": 5 + t}} for t in range(30)]
        bad = {"series": name, "id": 99, "y": 3}
        with pytest.raises(ValueError, match=r"line 31; nothing of the batch was done"):
            client.batch([*lines, bad])
        assert not list(series.rounds())
        answers = client.batch([*lines, {"series": name, "id": 3, "y": 51}, {"series": name, "id": 4, "drop": True}])
        assert [each["status"] for each in answers[-2:]] == ["settled", "dropped"]
        assert client.batch(lines[:1])[0]["repeated"]
        with pytest.raises(ValueError, match=r"exactly|one of forecast"):
            client.batch([{"series": name, "id": 5, "y": 1, "drop": True}])
        # a repeated line is answered as the first time
        assert client.batch(lines)[5]["forecast"] == answers[5]["forecast"]


def test_batch_answers_as_single_calls_bit_for_bit(served: Served, name: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []
    for t in range(12):
        calls.append(("forecasts", {"id": t, "forecast": QUANTILES, "cells": True, "issued": "2026-03-03"}))
        calls += [("outcomes", {"id": t - 2, "y": 41 + t, "known": "2026-03-04"})] if t > 1 else []
    with oc.Client(served.url) as client:
        for side in "ab":
            client.series(f"{name} {side}", low=0, high=100)
        single = [client.request("POST", f"/v1/series/{quote(f'{name} a')}/{verb}", call) for verb, call in calls]
        batch = client.batch({"series": f"{name} b", **call} for _, call in calls)
    assert [{**each, "series": None} for each in batch] == [{**each, "series": None} for each in single]


def test_pages_of_long_labels_are_short(served: Served, name: str) -> None:
    labels = ["a" * 10**6, "b" * 10**6]
    with oc.Client(served.url) as client:
        series = client.series(name, labels=labels)
        for t in range(5):
            series.predict(dict.fromkeys(labels, 0.5), id=t)
        page = client.request("GET", f"/v1/series/{quote(name)}/rounds")
        assert len(page["rounds"]) == 2
        assert [each["id"] for each in series.rounds()] == [4, 3, 2, 1, 0]


def test_pages_of_rounds_with_equal_times_are_complete(served: Served, name: str) -> None:
    with oc.Client(served.url) as client:
        series = client.series(name, binary=True)
        client.batch({"series": name, "id": t, "forecast": {"p": 0.5}, "target": "2026-03-03"} for t in range(230))
        assert [each["id"] for each in series.rounds(1000)] == [*range(229, -1, -1)]


@pytest.mark.parametrize("nasty", [each for each in NASTY if each and "\ud800" not in each and len(each) < 2000])
def test_names_of_any_characters_are_kept(served: Served, nasty: str) -> None:
    with oc.Client(served.url) as client:
        name = nasty + '/ü?#%2F\n{"status": 1}'
        series = client.series(name, low=0, high=1)
        series.predict(oc.Normal(0.5, 0.1), id=nasty)
        series.update(0.4, id=nasty)
        assert next(series.rounds())["id"] == nasty
        found, last = [], ""
        while last is not None:
            answer = client.request("GET", f"/v1/series?limit=2&after={last}")
            found, last = found + answer["series"], answer["next"]
        assert name in found
        assert len(found) == len(set(found))
    time.sleep(0.05)
    assert all(json.loads(line) for line in served.log[1:])  # one JSON object a line
    assert nasty.strip() in (" ", "", "nan") or nasty not in served.ask("GET", "/metrics")[1]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (("GET", "/nowhere", None), 404),
        (("DELETE", "/v1/series", None), 405),
        (("OPTIONS", "*", None), 404),
        (("GET", "/v1/series/%ff", None), 400),
        (("GET", "/v1/series/" + "x" * 3000, None), 422),
        (("PUT", "/v1/series/", {}), 422),
        (("GET", "/v1/series?limit=-1", None), 422),
        (("GET", "/v1/series?after=x", None), 422),
        (("PUT", "/v1/series/a", {"labels": [str(k) for k in range(257)]}), 422),
        (("PUT", "/v1/series/a", {"max_pending": 10_001}), 422),
        (("POST", "/v1/batch", b"[" * 100_000), 400),
        (("POST", "/v1/batch", b'{"lines": NaN}'), 400),
        (("POST", "/v1/batch", b"\xff"), 400),
        (("POST", "/v1/batch", b" " * (8 * 2**20 + 1)), 413),
        (("POST", "/v1/batch", {"lines": [{"series": "x"}] * 10_001}), 413),
        (("POST", "/v1/series/absent/outcomes", {"y": 1}), 404),
    ],
)
def test_wrong_requests_get_one_sentence(served: Served, request_: tuple[Any, ...], status: int) -> None:
    found, told, headers = served.ask(*request_)
    assert found == status
    assert told["error"].startswith("expected ")
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_other_content_types_and_hosts_are_refused(served: Served) -> None:
    # what a page of another site can send without asking
    assert served.ask("POST", "/v1/batch", {"lines": []}, **{"Content-Type": "text/plain"})[0] == 415
    assert served.ask("GET", "/v1/series", Host="evil.example")[0] == 403
    assert served.ask("GET", "/v1/series", X_Forwarded_For="8.8.8.8")[0] == 403
    assert served.ask("GET", "/healthz", Host="evil.example")[0] == 200


def test_head_and_chunked_bodies(served: Served, name: str) -> None:
    assert served.ask("HEAD", "/v1/series")[:2] == (200, "")
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    path, parts = f"/v1/series/{quote(name, safe='')}", (b'{"bin', b'ary": true}')
    connection.request("PUT", path, iter(parts), {"Content-Type": "application/json"}, encode_chunked=True)
    assert json.loads(connection.getresponse().read())["space"] == {"binary": True}
    connection.request("PUT", path, (b" " * 2**20 for _ in range(9)), {"Content-Type": "application/json"},
                       encode_chunked=True)  # fmt: skip
    assert connection.getresponse().status == 413
    connection.close()


def test_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    served = Served(f"sqlite:///{tmp_path}/s.db", "--seconds", "0.5")
    head = (
        b"PUT /v1/series/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    try:
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(head)
            assert b" 408 " in connection.recv(2**16)
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(head)
        time.sleep(0.2)
        assert served.ask("GET", "/readyz")[0] == 200
    finally:
        served.kill()
    assert not [line for line in served.log if "trace" in line]


# --- tokens


def test_tokens_are_needed_by_every_call(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(f"# forecasters\n{TOKEN}\n0123456789abcdef-two\n")
    served = Served(f"sqlite:///{tmp_path}/s.db", "--host", "0.0.0.0", "--tokens", str(tokens))
    try:
        for path in ("/", "/metrics", "/openapi.json", "/v1/series", "/nowhere"):
            status, _, headers = served.ask("GET", path)
            assert (status, headers["www-authenticate"][:5]) == (401, "Basic")
        assert served.ask("GET", "/", Authorization=f"Bearer {TOKEN[:-1]}")[0] == 401
        assert served.ask("GET", "/", Authorization=f"bearer {TOKEN}", Host="forecasts.example")[0] == 200
        basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
        assert served.ask("GET", "/", Authorization=f"Basic {basic}")[0] == 200
        assert served.ask("GET", "/", Authorization="Basic %%%")[0] == 401
        assert served.ask("GET", "/healthz")[0] == 200
        with oc.Client(served.url, token=TOKEN) as client:
            assert client.series("wind").predict(oc.Normal(3, 1)).certificate.holds
    finally:
        served.kill()
    assert TOKEN not in "".join(served.log)


def test_service_without_tokens_listens_to_this_machine_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected tokens for --host 0"):
        check_host("0.0.0.0", [])
    check_host("127.0.0.1", [])
    with pytest.raises(ValueError, match="16 to 1000 printable"):
        Tokens(["short"])
    (tmp_path / "none").write_text("\n# nothing\n")
    with pytest.raises(ValueError, match="at least one token"):
        read_tokens(str(tmp_path / "none"), TOKEN)
    assert read_tokens(None, f"{TOKEN}, {TOKEN}") == [TOKEN, f" {TOKEN}"]


# --- operation


def test_sigterm_finishes_requests_that_have_begun(tmp_path: Path) -> None:
    served = Served(f"sqlite:///{tmp_path}/s.db")
    with oc.Client(served.url) as client:
        client.series("wind", low=0, high=100)
    body = json.dumps({"lines": [{"series": "wind", "id": t, "forecast": {"mean": 50, "sd": 5}} for t in range(300)]})
    head = "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert b"100 Continue" in connection.recv(2**12)  # the service waits for the body
        served.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body.encode())
        answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    served.kill()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["answers"]) == 300
    with oc.open(tmp_path / "s.db") as store:
        assert len(store.series("wind").pending) == 300


def test_full_disk_names_the_file_and_the_service_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    limit = 600_000  # of a file, as a full disk would be
    served = Served(f"sqlite:///{path}", file_bytes=limit)
    try:
        with oc.Client(served.url) as client:
            series, done = client.series("wind", low=0, high=100), list[float]()
            means = (series.predict(oc.Normal(50, 5), id=t).mean() for t in range(2000))
            with pytest.raises(ValueError, match="can be written") as found:
                done.extend(means)
            assert str(path) in str(found.value)
            assert served.ask("GET", "/healthz")[0] == 200
            resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            assert series.predict(oc.Normal(50, 5), id=0).mean() == done[0]
            assert series.predict(oc.Normal(50, 5), id=len(done)).certificate.holds
            assert len(list(series.rounds(10_000))) == len(done) + 1
    finally:
        served.kill()


def test_openapi_describes_every_call(served: Served) -> None:
    described = served.ask("GET", "/openapi.json")[1]
    assert described["openapi"].startswith("3.1")
    calls = {(path, method) for path, found in described["paths"].items() for method in found}
    assert ("/v1/series/{series}/forecasts", "post") in calls
    assert len(calls) == 9
    text = json.dumps(described)
    references, schemas = re.findall('"#/components/schemas/([^"]+)', text), described["components"]["schemas"]
    assert set(references) <= set(schemas)
    path = "/v1/series/described"
    served.ask("PUT", path, {"low": 0, "high": 100, "mode": "shadow"})
    call = {"id": 1, "forecast": {"mean": 5, "sd": 1}, "levels": [0.5], "cells": True, "horizon": 1}
    answers = [served.ask("POST", f"{path}/forecasts", call)[1] for _ in range(2)]
    answers += [served.ask("POST", f"{path}/{verb}", {"id": 1, "y": y})[1] for verb, y in
                (("outcomes", 4), ("revisions", 5))] + served.ask("GET", f"{path}/rounds")[1]["rounds"]  # fmt: skip
    assert all(answer.keys() <= schemas["Round"]["properties"].keys() for answer in answers)
    assert served.ask("GET", path)[1].keys() <= schemas["Series"]["properties"].keys()


def test_command_tells_of_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "orcast", "serve", "--store", f"sqlite:///{tmp_path}/absent/s.db"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stderr.startswith("orcast: expected a file in an existing folder")) == (2, True)
    command[-1] = f"{tmp_path}/s.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for given, message in {
            ("--port", "99999"): "expected a number from 0 to 65535 as --port, got 99999",
            ("--seconds", "0"): "expected a number from 0.001 to 86400 as --seconds, got 0.0",
            (
                "--port",
                str(port),
            ): f"expected a free address as --host and --port, got 127.0.0.1:{port} (Addr",
            ("--tokens", "absent"): "expected a file with tokens as --tokens, got absent (No such file",
        }.items():
            done = subprocess.run([*command, *given], capture_output=True, text=True, env=os.environ)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert done.stderr.startswith(f"orcast: {message}")


def test_how_to_page_runs_as_it_stands(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "service.md").read_text()
    calls, *blocks = re.findall(r"```(?:sh\ncurl|py\n)(.+?)```", page, re.DOTALL)
    served = Served(f"sqlite:///{tmp_path}/wind.db")
    try:
        if shutil.which("curl"):
            command = f"set -e; curl -sSf {calls}".replace("\ncurl", "\ncurl -sSf").replace(
                "127.0.0.1:8000", served.url[7:]
            )
            told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
            assert '"rounds":1,' in told
        for block in blocks:
            code = block.replace("http://127.0.0.1:8000", served.url).replace("time.sleep(0.5)", "")
            subprocess.run([sys.executable, "-c", code], env=os.environ, check=True, capture_output=True)
        index = served.ask("GET", "/")[1]
        assert len(set(re.findall("/series/farm%20\\d+", index))) == 20
        assert "2 of 21 series are in alarm" in index
        assert 'orcast_series_in_alarm{side="input"} 2.0' in served.ask("GET", "/metrics")[1]
        assert [
            name for name in re.findall(r"`(orcast_\w+)`", page) if name not in served.ask("GET", "/metrics")[1]
        ] == []
    finally:
        served.kill()


def test_client_does_not_take_a_part_for_an_answer() -> None:
    def answer_in_part() -> None:
        for _ in range(2):
            connection, _address = listener.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_in_part)
        thread.start()
        with oc.Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client, pytest.raises(ConnectionError):
            client.request("GET", "/v1/series")
        thread.join()


@pytest.mark.parametrize("late", [0, 12])
def test_page_of_a_series_draws_the_evidence_of_its_monitors(late: int) -> None:
    rng = np.random.default_rng(1)
    with oc.open() as store:
        for space, forecast, draw in (
            (oc.Line(), oc.Normal(0, 1), lambda: rng.normal(1.0)),
            (oc.Binary(), 0.3, lambda: int(rng.random() < 0.6)),
            (oc.Labels(["a", "b", "c"]), [0.5, 0.3, 0.2], lambda: str(rng.choice(["a", "b", "c"]))),
        ):
            series = store.series(str(space), space=space)
            for t in range(50 + late):
                if t < 50:
                    series.predict(forecast, id=t, target=np.datetime64("2026-03-02T10:00:00") + t)
                if t >= late and t % 7:
                    series.update(draw(), id=t - late)
            history = series.history(100)
            rounds = [each for each in reversed(history) if each.status == "settled"]
            base, recalibrated = (mark.y[-1] for mark in web_pages.evidence_of(series, history, rounds).marks[:2])
            assert base == pytest.approx(np.log10(series.monitor.input.evidence))
            assert recalibrated == pytest.approx(np.log10(series.monitor.output.evidence))
            assert "time on 2026-03-02" in web_pages.series(series)()
        box = store.series("box", space=oc.Box([(0, 1)] * 2, cells=(3, 3)))
        box.predict(np.full(9, 1 / 9))
        box.update([0.2, 0.3])
        assert "No report on outcomes of this kind" in web_pages.series(box)()


def test_alarms_are_answered_counted_and_shown(tmp_path: Path) -> None:
    served, rng = Served(f"sqlite:///{tmp_path}/store.db"), np.random.default_rng(3)
    nasty = "a <b>\x1b[2J\u202e"
    try:
        with oc.Client(served.url) as client:
            client.series(nasty)
            client.series("calm")
            lines = []
            for t in range(120):
                for name, y in ((nasty, rng.normal(2.0 * (t >= 60))), ("calm", rng.normal())):
                    lines.append(
                        {
                            "series": name,
                            "id": t,
                            "forecast": {"mean": 0, "sd": 1},
                            "target": f"2026-03-03T{t // 60:02d}:{t % 60:02d}Z",
                        }
                    )
                    lines.append({"series": name, "id": t, "y": y})
            answers = client.batch(lines)
            again = client.batch(lines)
        raised = [(answer["id"], alarm) for answer in answers for alarm in answer.get("alarm", ())]
        assert [answer.get("alarm") for answer in again[1::2]] == [answer.get("alarm") for answer in answers[1::2]]
        at, alarm = next(each for each in raised if each[1]["question"] == "miscalibrated")
        assert (alarm["side"], alarm["kind"]) == ("input", "too low")
        assert 60 <= at < 75
        assert alarm["since"].startswith(("2026-03-03 00:5", "2026-03-03 01:0"))
        path = f"/v1/series/{quote(nasty, safe='')}"
        told = served.ask("GET", path)[1]["alarms"]
        assert [each["kind"] for each in told if each["side"] == "input"] == ["too low", "too low"]
        assert served.ask("GET", "/v1/series/calm")[1]["alarms"] == []
        rounds = served.ask("GET", f"{path}/rounds?limit=100")[1]["rounds"]
        assert [each["id"] for each in rounds if "alarm" in each] == [*dict.fromkeys(id for id, _ in reversed(raised))]
        metrics = served.ask("GET", "/metrics")[1]
        assert 'orcast_series_in_alarm{side="input"} 1.0' in metrics
        assert 'orcast_alarms_total{question="miscalibrated",side="input"} 1.0' in metrics
        assert "2J" not in metrics
        for page, words in (
            ("/", "1 of 2 series is in alarm"),
            (f"/series/{quote(nasty, safe='')}", "since 2026-03-03 0"),
        ):
            html = served.ask("GET", page)[1]
            assert words in html
            assert "too low by" in html
            assert "\x1b" not in html
        served.kill(signal.SIGTERM)
        # a service that is started again knows of an alarm when its series is used
        served = Served(f"sqlite:///{tmp_path}/store.db")
        served.ask("POST", f"{path}/forecasts", {"id": "next", "forecast": {"mean": 0, "sd": 1}})
        assert 'orcast_series_in_alarm{side="input"} 1.0' in served.ask("GET", "/metrics")[1]
    finally:
        served.kill()
