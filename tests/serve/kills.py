"""Kill the service, or its database, under load: the check behind tests."""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from serving import Served

import orcast as oc
from orcast.client import ServiceError

SAME = ("id", "forecast", "certificate", "cells", "issued", "target")


class Load:
    """A sender of forecasts and outcomes, which sends again what was not answered, and at times what was."""

    def __init__(self, name: str, url: Callable[[], str]) -> None:
        self.name, self.url = name, url
        self.rng, self.recal = random.Random(name), oc.Recalibrator(oc.Interval(0, 100))
        self.rounds = self.repeats = 0
        self.answers: list[tuple[dict[str, Any], ...]] = []
        self.stop, self.failure = threading.Event(), ""
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.play(self.rounds)
                self.rounds += 1
        except Exception as reason:  # a thread's own error would be lost
            self.failure = repr(reason)

    def play(self, t: int) -> None:
        """Run one round, and compare with a recalibrator that is never killed."""
        low, y = self.rng.uniform(10, 40), self.rng.uniform(5, 95)
        forecast = {"0.1": low, "0.5": low + 20, "0.9": low + 45}
        issued = self.ask("forecasts", {"id": t, "forecast": forecast, "cells": True})
        p = self.recal.predict({float(level): value for level, value in forecast.items()}, id=t)
        assert np.array_equal(issued["cells"]["mass"], p.mass), f"round {t} has another forecast"
        settled = self.ask("outcomes", {"id": t, "y": y})
        self.recal.update(y, id=t)
        own = self.recal.guarantee
        told = settled["guarantee"]
        assert (told["rounds"], told["miscalibration"]) == (own.rounds, own.miscalibration), f"round {t} is counted"
        self.answers.append((forecast, issued, settled))
        if self.rng.random() < 0.2:
            self.repeat(self.rng.randrange(len(self.answers)))

    def repeat(self, t: int) -> None:
        """Send an answered call again."""
        forecast, issued, settled = self.answers[t]
        again = self.ask("forecasts", {"id": t, "forecast": forecast, "cells": True})
        assert all(again[name] == issued[name] for name in SAME), f"round {t} is forecast otherwise"
        again = self.ask("outcomes", {"id": t, "y": settled["y"]})
        assert again == settled | {"repeated": True}, f"round {t} is settled otherwise"
        self.repeats += 1

    def ask(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answer of a call, which is sent until there is one."""
        end = time.monotonic() + 60
        while True:
            try:
                with oc.Client(self.url()) as client:
                    return client.request("POST", f"/v1/series/{self.name}/{verb}", body)
            except (ConnectionError, ServiceError) as reason:
                if time.monotonic() > end or getattr(reason, "status", 500) < 500:
                    raise
                time.sleep(0.02)


def killed_service(store: str, kills: int, seed: int) -> dict[str, int]:
    """Kill the service again and again; returns the counts, or raises AssertionError."""
    rng, served = random.Random(seed), Served(store)
    for name in ("north", "south"):
        served.ask("PUT", f"/v1/series/{name}", {"low": 0, "high": 100})
    address = [served.url]
    loads = [Load(name, lambda: address[0]) for name in ("north", "south")]
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.0, 0.4))
            served.kill()
            served = Served(store)
            address[0] = served.url
        time.sleep(0.5)
    finally:
        finish(loads)
        guarantees = [served.ask("GET", f"/v1/series/{load.name}")[1]["guarantee"] for load in loads]
        served.kill()
    return summary(loads, guarantees)


def finish(loads: list[Load]) -> None:
    """End the load after whole rounds."""
    for load in loads:
        load.stop.set()
        load.thread.join()


def summary(loads: list[Load], guarantees: list[dict[str, Any]]) -> dict[str, int]:
    """Acknowledged rounds, how many of them were lost or counted twice, and repeated calls."""
    assert not [load.failure for load in loads if load.failure]
    gaps = [guarantee["rounds"] - len(load.answers) for load, guarantee in zip(loads, guarantees, strict=True)]
    return {
        "rounds": sum(load.rounds for load in loads),
        "repeats": sum(load.repeats for load in loads),
        "lost": -sum(min(gap, 0) for gap in gaps),
        "doubled": sum(max(gap, 0) for gap in gaps),
    }


def killed_database(store: str, restart: Callable[[], None], kills: int, seed: int) -> dict[str, int]:
    """Kill and restart the database under two services; each of them has one of the senders."""
    rng, services = random.Random(seed), [Served(store), Served(store)]
    names = ("north", "south")
    for name in names:
        services[0].ask("PUT", f"/v1/series/{name}", {"low": 0, "high": 100})
    loads = [Load(name, lambda at=at: services[at].url) for at, name in enumerate(names)]  # type: ignore[misc]
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.1, 0.8))
            restart()
        time.sleep(1.0)
    finally:
        finish(loads)
        with contextlib.ExitStack() as stack:
            for service in services:
                stack.callback(service.kill)
            guarantees = [services[0].ask("GET", f"/v1/series/{name}")[1]["guarantee"] for name in names]
    return summary(loads, guarantees)
