"""Every kernel against its own Python source: the same games at both speeds, to the last bit."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from games import Array, games

import orcast
from orcast import jit
from orcast.jit import cache
from orcast.jit.registry import KERNELS

GAMES = dict(games())


@contextmanager
def in_python() -> Iterator[None]:
    """Kernels as their source."""
    before = jit.mode()
    jit.use("python")
    try:
        yield
    finally:
        jit.use(before)


@pytest.fixture(scope="module")
def uncompiled() -> tuple[dict[str, Array], set[Any]]:
    """What comes of the games in Python, and the code that was played."""
    played: set[Any] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            played.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with in_python():
            return {name: play() for name, play in GAMES.items()}, played
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("name", GAMES)
def test_compiled_is_uncompiled_to_the_last_bit(name: str, uncompiled: tuple[dict[str, Array], set[Any]]) -> None:
    play: Callable[[], Array] = GAMES[name]
    assert np.array_equal(play(), uncompiled[0][name], equal_nan=True)


def test_the_games_use_every_kernel(uncompiled: tuple[dict[str, Array], set[Any]]) -> None:
    own = {function for function in KERNELS if function.__module__.startswith("orcast.")}
    assert len(own) > 100
    assert sorted(f.__module__ + "." + f.__name__ for f in own if f.__code__ not in uncompiled[1]) == []


# What compiled code may compute otherwise: sums in another order, vectorised functions, powers as products or roots.
FORBIDDEN = {"sum", "mean", "dot", "cumsum", "prod", "var", "std", "exp", "log", "sqrt", "sin", "cos", "tanh", "power"}


@pytest.mark.parametrize("function", sorted(KERNELS, key=lambda f: f.__module__ + f.__name__), ids=lambda f: f.__name__)
def test_kernels_use_only_what_has_the_same_bits_at_both_speeds(function: Callable[..., Any]) -> None:
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        assert not isinstance(node, ast.Pow | ast.MatMult), "write powers and products out, or use orcast.jit.ieee"
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN:
            raise AssertionError(f"use a loop or orcast.jit.ieee instead of .{node.attr}")


def test_the_digest_sees_all_that_kernels_are_made_of() -> None:
    """Modules with kernels, and all that these import from the package, but for what only annotations use."""
    package = Path(orcast.__file__).parent
    sources = {path for pattern in cache.SOURCES for path in package.glob(pattern)}
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "kernel\ndef " not in text and "kernel_part\ndef " not in text:
            continue
        assert path in sources, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orcast"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                for name in [node.module or "", *names]:
                    module = package.parent / (name.replace(".", "/") + ".py")
                    assert not module.exists() or module in sources, f"{path} imports {name}"
