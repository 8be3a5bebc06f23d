"""Fuzzing of states: damage them, and check the results.

A state is damaged in its bytes, which checksums find; or in its header or its numbers, under right
checksums.  Whatever is refused must be refused with one message; whatever is accepted must give valid forecasts.

`python tests/mutations.py 200 --seed 3` tries some in this process and prints the results as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc
from orcast import persistence
from orcast.store.states import seal, unseal
from orcast.stream.serve import BAD
from orcast.stream.session import Session
from states import Saved, saved_states

ROUNDS = 100
# What a sentence begins with, or what stands before it.
SENTENCE = re.compile(r"(^|: |\()expected |pending \(max_pending\)")
# Numbers that have no business in a state, or just so.
ODD = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1.0, 0.5, 2.0, 1e-310, 1e-30, 1e9, -1e9, 1e30, 1e100, -1e100, 1e149,
       1e200, 1e308, -1e308, 9.007199254740993e15)  # fmt: skip
ODD_JSON = (None, True, False, 0, 1, -1, 2, 7, 1.5, -0.5, 1e-9, 1e9, 1e100, 1e308, 10**6, 10**9, 10**12, 10**18, 2**63,
            10**400, "", "a", "nan", [], {}, [1], [[]], [1e308], {"kind": "x"}, [None], ["a", "b"],
            {"tuple": [1, 2]}, {"float": "nan"}, {"array": [1], "shape": [10**9]})  # fmt: skip


class Bad(Exception):
    """What became of something is neither a sentence nor an answer."""


# --- states


def split(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of an intact state file."""
    header, arrays = persistence.decode(data)
    return {"format": persistence.FORMAT, **header}, {name: array.copy() for name, array in arrays.items()}


def joined(header: dict[str, Any], arrays: dict[str, np.ndarray], described: Any = None) -> bytes:
    """A state file with a right checksum, whatever its content."""
    if described is None:
        described = [[name, "<i8" if a.dtype.kind == "i" else "<f8", list(a.shape)] for name, a in arrays.items()]
    text = json.dumps({**header, "arrays": described}).encode()
    numbers = [array.tobytes() for array in arrays.values()]
    body = b"".join([len(text).to_bytes(4, "little"), text, *numbers])
    return persistence.MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def _mutated_store(rng: np.random.Generator, data: bytes) -> bytes:
    """The store of a stream, one of whose states, rounds or options is damaged under right checksums."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as file, file:
            column, table = [("state", "states"), ("record", "rounds"), ("value", "about")][
                rng.choice(3, p=[0.6, 0.3, 0.1])
            ]
            series = "0" if table == "about" else "series"
            query = f"SELECT rowid, {column}, {series} FROM {table} WHERE length({column}) > 0"
            rows = file.execute(query).fetchall()
            number, content, series = rows[rng.integers(len(rows))]
            content = mutated(rng, content, True) if table == "about" else _resealed(rng, content, series)
            file.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (content, number))
        return path.read_bytes()


def _resealed(rng: np.random.Generator, data: bytes, series: int) -> bytes:
    """The state of a series or a round with other numbers under a right checksum."""
    header, numbers = unseal(data, series)
    content = {"header": header}
    if header is not None and rng.integers(2):
        _change_header(rng, content)
    else:
        _change_arrays(rng, {"numbers": numbers})
    return seal(content.get("header"), numbers, series)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything in a header."""
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def _change_header(rng: np.random.Generator, header: Any) -> None:
    found = list(places(header))
    *path, key = found[rng.integers(len(found))]
    inner = header
    for step in path:
        inner = inner[step]
    how = rng.integers(10)
    if how == 0:
        del inner[key]
    elif how == 1 and isinstance(inner, list):
        inner.append(inner[key])
    elif how <= 3 and isinstance(inner[key], (int, float)) and not isinstance(inner[key], bool):
        inner[key] = inner[key] * float(rng.choice([-1.0, 0.5, 2.0, 1.001, 1e6])) + float(rng.integers(2))
    elif how == 4:
        *other, last = found[rng.integers(len(found))]
        value = header
        for step in (*other, last):
            if not isinstance(value, (dict, list)) or (isinstance(value, dict) and step not in value):
                return
            value = value[step]
        inner[key] = json.loads(json.dumps(value))
    else:
        inner[key] = deepcopy(ODD_JSON[rng.integers(len(ODD_JSON))])


def _change_arrays(rng: np.random.Generator, arrays: dict[str, np.ndarray], fields: tuple[slice, ...] = ()) -> Any:
    """Damage arrays; returns how they are to be described, if not as they are."""
    names = [name for name, array in arrays.items() if array.size]
    if not names:
        return None
    # each field alike, however many numbers it has
    name = names[rng.integers(len(names))]
    array, how = arrays[name], rng.integers(12)
    flat = array.reshape(-1)
    if fields and name.endswith("/row") and how >= 4:
        flat = flat[fields[rng.integers(len(fields))]]
    at = rng.integers(flat.size)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = array[..., :-1].copy() if array.ndim else array
    elif how == 2:
        arrays[name] = array.view("<i8" if array.dtype.kind == "f" else "<f8")
    elif how == 3:
        described = {n: ["i8" if a.dtype.kind == "i" else "f8", list(a.shape)] for n, a in arrays.items()}
        described[name][1] = [[10**9], [2**40, 2**40], [-1], [1.5], "x", [0], [[]], [10**400]][rng.integers(8)]
        return described
    elif how == 4:
        rng.shuffle(flat)
    elif how == 5:
        with np.errstate(all="ignore"):
            flat *= rng.choice([-1, 2, 10**6])
    elif how == 6:
        flat[:] = rng.integers(0, 2**63, flat.size).view(array.dtype)
    elif array.dtype.kind == "i":
        flat[at] = rng.choice([-1, 0, 1, 63, 64, 10**6, 2**40, -(2**62), 2**62])
    elif how == 7:
        flat.view(np.uint64)[at] ^= np.uint64(1) << np.uint64(rng.integers(64))
    else:
        flat[at] = ODD[rng.integers(len(ODD))]
    return None


def mutated(rng: np.random.Generator, data: bytes, right: bool, fields: tuple[slice, ...] = ()) -> bytes:
    """A state file that is damaged: with `right`, under right checksums."""
    if not right:
        return _damaged_bytes(rng, data)
    if data.startswith(b"SQLite"):
        return _mutated_store(rng, data)
    header, arrays = split(data)
    described = None
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        if rng.integers(2) and arrays:
            described = _change_arrays(rng, arrays, fields) or described
        else:
            _change_header(rng, header)
    return joined(header, arrays, described)


def _damaged_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """A file that is cut, longer, or has other bytes anywhere, at its start or at its end."""
    raw = bytearray(data)
    how = rng.integers(5)
    if how == 0:
        return bytes(raw[: rng.integers(len(raw))])
    if how == 1:
        return bytes(raw + rng.bytes(int(rng.integers(1, 40))))
    for _ in range(int(rng.integers(1, 5))):
        first, last = [(0, len(raw)), (0, 250), (len(raw) - 250, len(raw))][how - 2]
        raw[int(rng.integers(first, last))] = int(rng.integers(256))
    return bytes(raw)


def try_with(saved: Saved, data: bytes, folder: Path) -> str:
    """Load another content of a state's file and continue: "refused" or "played", or raise `Bad`."""
    file = folder / "state.orcast"
    file.write_bytes(data)
    try:
        loaded = saved.load(file)
    except (TypeError, ValueError) as reason:
        return refused(reason)
    if saved.kind == "game":
        run_rounds_recal(loaded, saved.steps)
    elif saved.kind == "stream":
        run_rounds_stream(loaded, saved.steps)
    else:
        for step in saved.steps:
            attempt(step, loaded)
    return "result"


def refused(reason: Exception) -> str:
    """That it was refused, if it was in a sentence."""
    text = str(reason)
    if not SENTENCE.search(text) or "\n" in text or len(text) > 1000:
        raise Bad(f"{type(reason).__name__}: {text[:200]!r} is no sentence") from reason
    return "refused"


def a_forecast(space: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A plausible forecast on a space, and an outcome."""
    if isinstance(space, oc.spaces.OrderedSpace):
        low = space.low if math.isfinite(space.low) else (space.high - 100.0 if math.isfinite(space.high) else 0.0)
        width = space.high - low if math.isfinite(space.high) else 100.0
        middle = low + width * rng.uniform(0.3, 0.7)
        return oc.Normal(middle, 0.1 * width), min(max(middle + 0.1 * width * rng.normal(), space.low), space.high)
    masses = rng.dirichlet(np.ones(space.cells))
    k = int(rng.choice(space.cells, p=masses))
    return (masses[1] if isinstance(space, oc.Binary) else masses), space.value(k)


def run_rounds_recal(recal: Any, known: tuple[Any, ...]) -> None:
    """Settle pending rounds and continue, with known features; forecasts and guarantee must be valid."""
    rng = np.random.default_rng(0)
    recal.guarantee  # noqa: B018
    for id in recal.pending:
        attempt(recal.update, a_forecast(recal.space, rng)[1], id=id)
    for number in range(ROUNDS):
        forecast, y = a_forecast(recal.space, rng)
        x = {"x": known[number % len(known)]} if known else {}
        names = getattr(recal, "experts", ("expert",))
        if names == ("expert",):
            p = attempt(recal.predict, forecast, **x)
        else:
            p = attempt(recal.predict, experts=dict.fromkeys(names, forecast), **x)
        if p is None:
            continue
        check_forecast(p)
        attempt(recal.update, y)
    guarantee = recal.guarantee
    numbers = (guarantee.miscalibration, guarantee.held)
    if not (
        np.isfinite(numbers).all()
        and guarantee.miscalibration <= (guarantee.promised + guarantee.excess) * (1.0 + 1e-6)
    ):
        raise Bad(f"the guarantee is {guarantee}")


def attempt(act: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What comes of it, None if it is refused in a sentence: a changed configuration may ask for other input."""
    try:
        return act(*given, **options)
    except Exception as reason:
        # a function of the user's own may not like the features that a damaged round has
        if not traceback.extract_tb(reason.__traceback__)[-1].filename.endswith("states.py"):
            if not isinstance(reason, (TypeError, ValueError)):
                raise
            refused(reason)
        return None


def check_forecast(p: Any) -> None:
    """Refuse forecasts that are none."""
    if isinstance(p, oc.Forecast):
        q = p.quantile([0.05, 0.5, 0.95])
        if not (np.isfinite(q).all() and (np.diff(q) >= 0.0).all()):
            raise Bad(f"the quantiles are {q}")
    elif not (np.isfinite(p.mass).all() and abs(p.mass.sum() - 1.0) < 1e-6):
        raise Bad(f"the masses are {p.mass}")
    if not math.isfinite(p.certificate.promised):
        raise Bad(f"the certificate is {p.certificate}")


def run_rounds_stream(session: Session, lines: tuple[Any, ...]) -> None:
    try:
        for number in range(max(1, ROUNDS // len(lines))):
            for each in lines:
                line = {**each}
                if number and line.get("id") is not None:
                    line["id"] = f"{number} {line['id']}"
                answer_line(session, json.dumps(line).encode())
    finally:
        session.close()


def answer_line(session: Any, line: bytes) -> str:
    """What becomes of a line: "answered" or "refused", or `Bad`."""
    try:
        answer = session.answer(line)
    except BAD as reason:
        return refused(reason)
    found = json.loads(answer)
    if not all(isinstance(each, (int, float)) for each in _numbers(found.get("forecast", {}))):
        raise Bad(f"the answer is {answer[:200]!r}")
    return "answered"


def _numbers(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for each in data:
            yield from _numbers(each)
    else:
        yield data


# --- trying many


def states(rng: np.random.Generator, count: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Damaged states of all kinds in turn, every second one under right checksums."""
    cases = saved_states()
    order = rng.permutation(len(cases))
    for number in range(count):
        case = cases[order[(number // 2) % len(cases)]]
        data = mutated(rng, case.data, number % 2 == 1, case.fields)
        yield f"{case.name} {'right' if number % 2 else 'wrong'}", partial(_tried_alone, case, data)


def _tried_alone(case: Saved, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return try_with(case, data, Path(folder))


def tried(count: int, seed: int) -> dict[str, Any]:
    """Counts by outcome, the slowest, the largest memory, and what was bad."""
    rng = np.random.default_rng(seed)
    outcomes: Counter[str] = Counter()
    bad: list[str] = []
    slowest, which = 0.0, ""
    for number, (name, run) in enumerate(states(rng, count)):
        begin = time.process_time()  # not what others on the machine take
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # of numpy's: a number that is none is about to be played
                warnings.filterwarnings("error", category=RuntimeWarning, message=".*encountered")
                signal.alarm(120)
                outcome = run()
        except BaseException as reason:
            if isinstance(reason, KeyboardInterrupt):
                raise
            outcome = "bad"
            where = traceback.extract_tb(reason.__traceback__)[-1]
            bad.append(f"{seed}/{number} {name}: {type(reason).__name__}: {str(reason)[:160]} ({where.name})")
        finally:
            signal.alarm(0)
        taken = time.process_time() - begin
        if taken > slowest:
            slowest, which = taken, f"{seed}/{number} {name}"
        outcomes[outcome] += 1
    return {"outcomes": outcomes, "bad": bad, "slowest": slowest, "which": which, "peak": peak_memory()}


def peak_memory() -> int:
    """Bytes, at most, since this program began; what `getrusage` says includes the process that began it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return next(1024 * int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    def too_slow(*_: Any) -> None:
        raise TimeoutError("it takes more than 30 s")

    signal.signal(signal.SIGALRM, too_slow)
    print(json.dumps(tried(options.count, options.seed)))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
