"""What a call of a kernel is compiled for: the types of its arguments, as plain data that any process can read."""

from __future__ import annotations

import hashlib
import json
from importlib import import_module
from typing import Any

import numpy as np

Signature = list[Any]


def signature_of(args: tuple[Any, ...]) -> Signature:
    """The types of arguments: numbers, arrays by dtype, dimensions and order, named tuples by their class."""
    return [_describe(arg) for arg in args]


def _describe(arg: Any) -> Any:
    kind = type(arg)
    if kind is np.ndarray:
        order = "C" if arg.flags.c_contiguous else "F" if arg.flags.f_contiguous else "A"
        return [arg.dtype.str, arg.ndim, order, bool(arg.flags.writeable)]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": [_describe(field) for field in arg]}
    for name, kinds in (("bool", (bool, np.bool_)), ("int", (int, np.integer)), ("float", (float, np.floating))):
        if isinstance(arg, kinds):
            return name
    raise TypeError(f"expected a number, an array or a named tuple of such for a kernel, got {kind.__name__}")


def key_of(name: str, signature: Signature) -> str:
    """Under which name the compiled code of a kernel is kept."""
    text = json.dumps([name, signature], separators=(",", ":"))
    return f"{name.rsplit('.', 2)[-2]}.{name.rsplit('.', 1)[-1]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def numba_types(signature: Signature) -> tuple[Any, ...]:
    """The types of a signature as numba has them."""
    return tuple(_numba_type(described) for described in signature)


def _numba_type(described: Any) -> Any:
    from numba.core import types
    from numba.np.numpy_support import from_dtype

    if isinstance(described, list):
        dtype, ndim, order, writeable = described
        return types.Array(from_dtype(np.dtype(dtype)), ndim, order, readonly=not writeable)
    if isinstance(described, dict):
        module, name = described["class"].split(":")
        fields = [_numba_type(field) for field in described["fields"]]
        tuples: Any = types.BaseTuple
        return tuples.from_types(fields, getattr(import_module(module), name))
    return {"bool": types.boolean, "int": types.int64, "float": types.float64}[described]
