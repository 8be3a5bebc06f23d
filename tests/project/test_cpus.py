"""The script behind `make test-cpus`: features are chosen by names that numpy knows, and a failure is not lost."""

import os
from pathlib import Path

import pytest

import cpus

NEW = ["X86_V3", "X86_V4", "AVX512_ICL"]
OLD = ["SSE41", "AVX", "FMA3", "AVX2", "AVX512F", "AVX512_SKX"]
SHIPPED, ONE, AVX2, BASELINE = cpus.SETTINGS


def test_only_features_that_numpy_has_found_are_named() -> None:
    assert SHIPPED.variables(NEW, "x86_64") == {}
    assert AVX2.variables(NEW, "x86_64") == {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_NUM_THREADS": "4",
    }
    assert (AVX2.variables(OLD, "AMD64") or {})["NPY_DISABLE_CPU_FEATURES"] == "AVX512F AVX512_SKX"
    assert (BASELINE.variables(OLD, "x86_64") or {})["NPY_DISABLE_CPU_FEATURES"] == " ".join(OLD)


def test_other_processors_get_what_they_can() -> None:
    assert "NPY_DISABLE_CPU_FEATURES" not in (AVX2.variables(["X86_V3"], "x86_64") or {})
    assert AVX2.variables([], "x86_64") is None
    assert AVX2.variables(["ASIMDHP", "SVE"], "arm64") is None
    assert BASELINE.variables(["ASIMDHP", "SVE"], "arm64") == {
        "NPY_DISABLE_CPU_FEATURES": "ASIMDHP SVE",
        "OPENBLAS_NUM_THREADS": "1",
    }


def test_the_tests_it_names_are_there() -> None:
    for name in {*cpus.TESTS, *cpus.SHORT_TESTS}:
        file, _, test = cpus.located(name).partition("::")
        assert f"def {test}" in (cpus.ROOT / file).read_text()


def test_the_setting_is_in_force_and_a_failure_ends_in_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpus, "SHORT", cpus.SHORT[1:])
    monkeypatch.setenv("ORCAST_KERNELS", "compiled")  # what was chosen outside is not what is tried
    inside = tmp_path / "test_inside.py"
    inside.write_text(
        "import numpy as np\n"
        "from orcast.kernels import rows\n"
        "def test_kernels():\n"
        '    assert not np.show_config(mode="dicts")["SIMD Extensions"].get("found")\n'
        "    assert rows.__file__.endswith('.py')\n"
        "def test_that_fails():\n"
        "    assert 1 + 1 == 3\n"
    )
    assert cpus.main(["--short", "-c", os.devnull, f"--rootdir={tmp_path}", "--tests", str(inside)]) == 1
    head, row, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == ["setting", "passed", "failed", "seconds"]
    assert row[34:].split()[:2] == ["1", "1"]
    assert any("assert (1 + 1) == 3" in line for line in rest)


def test_a_process_that_does_not_get_to_its_tests_has_failed(tmp_path: Path) -> None:
    outcome = cpus.run({}, [str(tmp_path / "test_nowhere.py")])
    assert (outcome.passed, outcome.failed) == (0, 1)
