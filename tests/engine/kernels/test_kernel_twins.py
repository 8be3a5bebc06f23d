"""Every kernel against its own Python source: the same games compiled and not, up to rounding."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from games import Array, games

import orcast
from orcast import jit

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """What comes of the games in a process without a compiler."""
    out = tmp_path_factory.mktemp("games") / "uncompiled.npz"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(orcast.__file__).parents[1])}
    subprocess.run([sys.executable, "-W", "ignore", HERE / "games.py", out], env=environment, check=True)
    with np.load(out) as found:
        return dict(found)


@pytest.mark.parametrize(("name", "play"), list(games()), ids=[name for name, _ in games()])
def test_compiled_is_uncompiled(name: str, play: object, uncompiled: dict[str, Array]) -> None:
    assert callable(play)
    found, expected = play(), uncompiled[name]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def test_the_games_use_every_kernel(uncompiled: dict[str, Array]) -> None:
    assert uncompiled["idle"].tolist() == []


def test_the_digest_sees_all_that_kernels_are_made_of() -> None:
    """Modules with kernels, and all that these import from the package, but for what only annotations use."""
    package = Path(orcast.__file__).parent
    sources = {path for pattern in jit.SOURCES for path in package.glob(pattern)}
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "kernel\ndef " not in text and "= kernel(" not in text:
            continue
        assert path in sources, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orcast"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                for name in [node.module or "", *names]:
                    module = package.parent / (name.replace(".", "/") + ".py")
                    assert not module.exists() or module in sources, f"{path} imports {name}"
