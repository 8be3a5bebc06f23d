"""A process that writes to a store, started by the tests: `python writers.py URL WRITER COUNT`.

It prints the id of each round that was acknowledged.  A first line on stdin lets all writers begin at once.
"""

import random
import sys
from typing import Any

import orcast as oc

SERIES = ("north", "south", "rain")


def space_of(name: str) -> Any:
    return oc.Binary() if name == "rain" else oc.Interval(0, 100)


def forecast_of(name: str, id: str) -> Any:
    rng = random.Random(f"{name} {id}")
    return rng.random() if name == "rain" else {0.1: rng.uniform(20, 40), 0.5: 50.0, 0.9: rng.uniform(60, 80)}


def outcome_of(name: str, id: str) -> Any:
    rng = random.Random(f"{id} {name}")
    return rng.randrange(2) if name == "rain" else rng.uniform(20, 90)


def write(url: str, writer: int, count: int) -> None:
    store = oc.open(url)
    rng = random.Random(writer)
    waiting: list[tuple[str, str]] = []
    for t in range(count):
        name, id = rng.choice(SERIES), f"{writer} {t}"
        store.series(name, space=space_of(name)).predict(forecast_of(name, id), id=id)
        print(f"issued\t{name}\t{id}", flush=True)
        waiting.append((name, id))
        while len(waiting) > 2 or (waiting and t == count - 1):
            name, id = waiting.pop(rng.randrange(len(waiting)))
            store.series(name).update(outcome_of(name, id), id=id)
            print(f"settled\t{name}\t{id}", flush=True)
    store.close()


if __name__ == "__main__":
    sys.stdin.readline()
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
