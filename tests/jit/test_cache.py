"""The cache of compiled kernels: it sees every change of every kernel, and does not grow without end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orcast
from orcast.jit import background, cache

# An entry that calls a kernel in another file.
PROGRAM = """
import numpy as np
from orcast.engine.kernels import finite
from orcast.jit import background, cache
losses, experts, pool = np.ones(2), np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0.3, 0.7])
arguments = losses, experts, pool, 0.5, 0.0, 0
known = cache.read(background.wanted_for(finite.learn_pool, arguments).key) is not None
finite.learn_pool(*arguments)
assert finite.learn_pool.code is not None
print(losses[0], int(known))
"""


def run(package: Path) -> tuple[float, int]:
    """What the kernel says, and whether it was found in the cache."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package), "ORCAST_KERNELS": "compiled"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=package, check=True, capture_output=True, text=True
    )
    value, known = done.stdout.split()
    return float(value), int(known)


@pytest.mark.slow
def test_a_change_in_another_file_is_seen(tmp_path: Path) -> None:
    source = Path(orcast.__file__).parent
    shutil.copytree(source, tmp_path / "orcast", ignore=shutil.ignore_patterns("__pycache__"))
    loss = 0.34657359027997264  # half of the log loss of a half
    assert run(tmp_path) == (pytest.approx(0.5 + loss), 0)
    assert run(tmp_path) == (pytest.approx(0.5 + loss), 1)
    other = tmp_path / "orcast/engine/kernels/delays.py"
    text = other.read_text()
    assert "return 1.0 - (1.0 - discount) * weight" in text
    other.write_text(text.replace("return 1.0 - (1.0 - discount) * weight", "return 0.0"))
    assert run(tmp_path) == (pytest.approx(loss), 0)
    other.write_text(text)
    assert run(tmp_path) == (pytest.approx(0.5 + loss), 1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    cache.folder.cache_clear()
    yield tmp_path
    cache.folder.cache_clear()


def test_old_digests_go(place: Path) -> None:
    names = [f"orcast-{letter * 16}" for letter in "abcd"]
    for age, name in enumerate([*names, "orcast-paper"]):
        (place / name).mkdir()
        (place / name / "kernel").touch()
        os.utime(place / name, (1000.0 - age, 1000.0 - age))
    today = cache.folder()
    assert today is not None
    assert {path.name for path in place.iterdir()} == {today.name, *names[:2], "orcast-paper"}


def test_a_cache_that_cannot_be_written_to_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("kernel", b"code")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "folder", lambda: None)
        assert cache.read("kernel") == b"code"


def test_code_of_another_kernel_is_not_taken(place: Path) -> None:
    cache.write("one", b"code")
    folder = cache.folder()
    assert folder is not None
    (folder / "other").write_bytes((folder / "one").read_bytes())
    assert (cache.read("one"), cache.read("other")) == (b"code", None)
    (folder / "one").write_bytes((folder / "one").read_bytes()[:-1])
    assert cache.read("one") is None


def test_a_folder_that_is_gone_is_made_again(place: Path) -> None:
    folder = cache.folder()
    assert folder is not None
    folder.rmdir()
    with cache.lock(wait=False) as had:
        assert had


def test_what_is_read_is_whole(place: Path) -> None:
    assert cache.read("kernel") is None
    cache.write("kernel", b"code")
    assert cache.read("kernel") == b"code"
    folder = cache.folder()
    assert folder is not None
    (folder / "kernel.1.partial").write_bytes(b"half")
    cache.remove_partial_files()
    assert [path.name for path in folder.iterdir()] == ["kernel"]


def test_one_at_a_time(place: Path) -> None:
    program = (
        "import sys; from orcast.jit import cache\n"
        "with cache.lock(wait=False) as had:\n    print(had, flush=True); sys.stdin.read()"
    )
    ask = [sys.executable, "-c", program]
    first = subprocess.Popen(ask, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "True\n"
    with cache.lock(wait=False) as had:
        assert not had
    first.kill()  # a process that is killed holds nothing
    first.communicate()
    with cache.lock(wait=False) as had:
        assert had


def test_a_place_that_cannot_be_written_to_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    cache.folder.cache_clear()
    try:
        assert cache.folder() is None
        assert cache.read("kernel") is None
        cache.write("kernel", b"code")
        with cache.lock(wait=True) as had:
            assert had
    finally:
        cache.folder.cache_clear()


def test_damaged_code_is_compiled_again(place: Path) -> None:
    import numpy as np

    from orcast.forecasts import kernels

    entry = orcast.jit.EntryKernel(kernels.mean_and_variance.source)
    args = (2, np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5]), False, False)
    wanted = background.wanted_for(entry, args)
    for damaged in (b"", b"not code", None):
        entry.code = None
        if damaged is not None:
            cache.write(wanted.key, damaged)
            assert not background.load(wanted)
        assert background.compile_here(wanted)
        assert entry(*args) == (1.0, pytest.approx(1.0 / 3.0))
    entry.code = None
    assert background.load(wanted)
