"""Which functions are kernels, and what the compiler has to know of them; nothing here needs numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Kernels, and whether a kernel is compiled in the place of each call to it.
KERNELS: dict[Callable[..., Any], bool] = {}
# Python functions that kernels call, and what compiled ones call instead.
STAND_INS: dict[Callable[..., Any], Callable[..., Any]] = {}
# Python functions that kernels call, and what writes them for the types of their arguments.
WRITERS: dict[Callable[..., Any], Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Any:
    """A function that kernels may call."""
    KERNELS[function] = False
    return function


def kernel_part(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of those that call it: a call with many arrays would cost as much as it does."""
    KERNELS[function] = True
    return function


def compiled_only(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """A writer of the function that stands for a Python function in compiled kernels, by the types of its arguments."""

    def register(writer: Function) -> Function:
        WRITERS[function] = writer
        return writer

    return register


def source_of(value: Any) -> Any:
    """The function behind an entry kernel; anything else as it is."""
    return getattr(value, "source", value)


def callees(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The kernels that a kernel names, in any order."""
    scope = function.__globals__
    found = (source_of(scope.get(name)) for name in function.__code__.co_names)
    return [other for other in found if callable(other) and other in KERNELS]


def reached_from(function: Callable[..., Any]) -> set[Callable[..., Any]]:
    """A kernel and all that it calls, and they call."""
    found: set[Callable[..., Any]] = set()
    open_ones = [function]
    while open_ones:
        one = open_ones.pop()
        if one not in found:
            found.add(one)
            open_ones.extend(callees(one))
    return found
