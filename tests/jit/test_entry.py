"""Entry kernels: which speed is played, and that nothing can be seen of it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orcast import jit
from orcast.jit.entry import chosen_mode, recorded
from orcast.jit.ieee import exp, log, power, real_power, sqrt
from orcast.jit.registry import reached_from
from orcast.jit.signature import key_of, signature_of


def double(x: float) -> float:
    return 2.0 * x


def test_modes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    for name, expected in {"": "auto", "auto": "auto", " Compiled ": "compiled", "python": "python"}.items():
        monkeypatch.setenv("ORCAST_KERNELS", name)
        assert chosen_mode().value == expected
    monkeypatch.setenv("ORCAST_KERNELS", "fast")
    with pytest.raises(ValueError, match=r"^expected one of auto, compiled, python as ORCAST_KERNELS, got 'fast'$"):
        chosen_mode()
    monkeypatch.setenv("ORCAST_KERNELS", "compiled")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert chosen_mode() is jit.Mode.PYTHON


def test_an_entry_that_has_no_code_for_some_types_plays_its_source() -> None:
    entry = jit.entry_kernel(double)
    before = jit.mode()
    try:
        jit.use("compiled")
        assert entry(2.0) == 4.0
        assert entry.code is not None
        jit.use("python")
        assert entry(1.5) == 3.0
        jit.use("auto")
        assert entry(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    finally:
        jit.use(before)


def test_recorded_calls_are_those_of_python() -> None:
    inner = jit.entry_kernel(double)
    outer = jit.entry_kernel(lambda x: inner(x) + 1.0)
    with recorded() as calls:
        assert outer(1.0) == 3.0
        assert inner(2.0) == 4.0
    assert [entry for entry, _ in calls] == [outer, inner]


def test_signatures_tell_types_apart() -> None:
    from orcast.engine.kernels.records import Outcome

    numbers = np.zeros(3)
    described = [
        signature_of((value,))
        for value in (1.0, 1, True, numbers, numbers[::2], numbers.reshape(1, 3), Outcome(1.0, 1.0, 1.0, 1.0))
    ]
    assert len({key_of("orcast.module.name", one) for one in described}) == len(described)
    assert signature_of((np.float64(2.0), np.int64(1), np.True_)) == signature_of((1.0, 1, True))
    with pytest.raises(TypeError, match=r"^expected a number, an array or a named tuple .* got str$"):
        signature_of(("text",))


def test_arithmetic_is_that_of_compiled_code() -> None:
    assert (exp(1000.0), exp(-1000.0)) == (np.inf, 0.0)
    assert log(0.0) == -np.inf
    assert np.isnan(log(-1.0)) and np.isnan(sqrt(-1.0))  # noqa: PT018
    assert [power(3.0, n) for n in range(5)] == [1.0, 3.0, 9.0, 27.0, 81.0]
    assert real_power(2.0, 0.5) == pytest.approx(2.0**0.5)
    assert real_power(0.0, -1.0) == np.inf


def test_an_entry_knows_the_kernels_it_reaches() -> None:
    from orcast.engine.kernels import correction, packing, quantile_function, rounds, tracker

    reached = reached_from(packing.predict.source)
    assert {rounds.predict, correction.correct, quantile_function.corrected, power} < reached
    assert tracker.learn not in reached


FIRST = """
import sys, time
import orcast as oc
recal = oc.Recalibrator(oc.Interval(0, 1))
for _ in range(5):
    recal.predict(oc.Normal(0.5, 0.1))
    recal.update(0.4)
print(recal.guarantee.rounds, "numba" in sys.modules)
"""


def run(program: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(place), "ORCAST_KERNELS": "auto", **variables}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)


def test_the_first_rounds_wait_for_nothing(tmp_path: Path) -> None:
    done = run(FIRST, tmp_path)
    assert done.stdout == "5 False\n"
    assert done.stderr == ""
    assert not list(tmp_path.rglob("*-*-*"))


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ImportError("no module named " + name)
sys.meta_path.insert(0, Blocked())
import numpy as np, orcast as oc
recal = oc.Recalibrator(oc.Interval(0, 1))
recal.run([oc.Normal(0.5, 0.1)] * 60, np.linspace(0.0, 1.0, 60))
for _ in range(50):
    recal.predict(oc.Normal(0.5, 0.1)); recal.update(0.4)
rain = oc.Recalibrator(oc.Binary())
rain.predict(0.7); rain.update(1)
three = oc.Recalibrator(oc.Labels(["a", "b", "c"]))
three.predict([0.5, 0.3, 0.2]); three.update("b")
print(recal.guarantee.rounds, recal.guarantee.held, "numba" in sys.modules)
"""


@pytest.mark.parametrize("kernels", ["auto", "python", "compiled"])
def test_everything_works_without_numba(tmp_path: Path, kernels: str) -> None:
    done = run(BLOCKED, tmp_path, ORCAST_KERNELS=kernels)
    assert done.stdout == "110 1.0 False\n"
    lines = done.stderr.splitlines()
    assert len(lines) <= 3
    assert ("numba cannot be imported" in done.stderr) == (kernels == "compiled")
