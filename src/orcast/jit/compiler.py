"""Compiles entry kernels, with numba; the only module that knows it.

An entry is compiled with all the kernels it reaches.  numba would optimise each of them on its own and again in each
of its callers, and make code of it that nobody calls; here they stay as they come until the entry, into which they are
linked, is optimised as a whole.  That halves the time.
"""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import EnumMeta
from functools import cache
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import codegen, event
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.extending import overload

from orcast.jit.registry import KERNELS, STAND_INS, WRITERS, source_of
from orcast.jit.signature import Signature, numba_types

INNER_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def inner_kernel(function: Callable[..., Any]) -> Any:
    """A kernel as other kernels call it."""
    options: dict[str, Any] = {"inline": "always"} if KERNELS[function] else INNER_OPTIONS
    compile_with: Any = njit(error_model="numpy", **options)
    return compile_with(in_compiled_scope(function))


def new_entry(function: Callable[..., Any]) -> Any:
    """A kernel as Python calls it, of which nothing is compiled yet."""
    options: dict[str, Any] = {"no_cfunc_wrapper": True}
    with global_compiler_lock:  # what is made for one thread is not made again for another
        return njit(error_model="numpy", **options)(in_compiled_scope(function))


def in_compiled_scope(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose globals are what compiled kernels have in their place."""
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        value = source_of(scope.get(name))
        if not callable(value):
            continue
        if isinstance(value, EnumMeta):
            scope[name] = plain_numbers(value)
        elif value in KERNELS:
            scope[name] = inner_kernel(value)
        elif value in STAND_INS:
            scope[name] = STAND_INS[value]
        elif value in WRITERS:
            register_writer(value)
    twin = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    twin.__qualname__ = function.__qualname__
    return twin


@cache
def plain_numbers(names: EnumMeta) -> Any:
    """An enumeration of whole numbers as a named tuple of them: numba before 0.68 takes no member as an index."""
    members: dict[str, Any] = dict(names.__members__)
    kind: Any = namedtuple(names.__name__, list(members))  # type: ignore[misc]
    return kind(*map(int, members.values()))


@cache
def register_writer(function: Callable[..., Any]) -> None:
    """Tell numba how a Python function is written for types."""
    overload(function, strict=False)(WRITERS[function])


class Depth(event.Listener):
    """How many kernels are being compiled inside each other, and how many are done."""

    def __init__(self, done: Callable[[], None]) -> None:
        self.depth, self.done = 0, done

    def on_start(self, event: Any) -> None:
        """One more."""
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """One less."""
        self.depth -= 1
        if str(event.data["dispatcher"].py_func.__module__).startswith("orcast."):
            self.done()


@contextmanager
def inner_kernels_unfinished(depth: Depth) -> Iterator[None]:
    """While this lasts, what is compiled inside something else is neither optimised nor made code of."""
    library: Any = codegen.CPUCodeLibrary
    jit_library: Any = codegen.JITCodeLibrary
    generator: Any = codegen.JITCPUCodegen
    optimise, finish = library._optimize_final_module, library._finalize_final_module
    pointer, set_environment = jit_library.get_pointer_to_function, generator.set_env
    unfinished: set[int] = set()

    def optimise_entry(self: Any) -> None:
        if depth.depth <= 1:
            optimise(self)

    def finish_entry(self: Any) -> None:
        if depth.depth <= 1:
            finish(self)
        else:
            self._finalize_dynamic_globals()
            self._finalized = True
            unfinished.add(id(self))

    def pointer_of_entry(self: Any, name: str) -> Any:
        self._ensure_finalized()
        return 0 if id(self) in unfinished else pointer(self, name)

    def set_environment_of_entry(self: Any, name: str, environment: Any) -> None:
        if depth.depth <= 1:
            set_environment(self, name, environment)

    library._optimize_final_module, library._finalize_final_module = optimise_entry, finish_entry
    jit_library.get_pointer_to_function, generator.set_env = pointer_of_entry, set_environment_of_entry
    try:
        yield
    finally:
        library._optimize_final_module, library._finalize_final_module = optimise, finish
        jit_library.get_pointer_to_function, generator.set_env = pointer, set_environment


def compile_entry(dispatcher: Any, signature: Signature, done: Callable[[], None] = lambda: None) -> bytes:
    """Compile an entry for the types of a signature; returns its code, as `load_entry` takes it."""
    depth = Depth(done)
    types = numba_types(signature)
    with global_compiler_lock, event.install_listener("numba:compile", depth), inner_kernels_unfinished(depth):
        dispatcher.compile(types)
    result = dispatcher.overloads[types]
    code: bytes = dumps((processor(dispatcher), result._reduce()))  # type: ignore[no-untyped-call]
    return code


def load_entry(dispatcher: Any, code: bytes) -> None:
    """Give an entry the code that another process has compiled, for a processor like this one."""
    built_for, payload = pickle.loads(code)
    if built_for != processor(dispatcher):
        raise ValueError("compiled for another processor")
    with global_compiler_lock:
        target = dispatcher.targetctx
        target.refresh()
        result = CompileResult._rebuild(target, *payload)  # type: ignore[no-untyped-call]
        if tuple(result.signature.args) not in dispatcher.overloads:
            target.insert_user_function(result.entry_point, result.fndesc, [result.library])
            dispatcher.add_overload(result)


def processor(dispatcher: Any) -> Any:
    """What code is made for."""
    return dispatcher.targetctx.codegen().magic_tuple()
