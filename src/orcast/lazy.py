"""Lazy imports: names of a package are imported on first use; its stub `__init__.pyi` lists them."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose stub has only lines `from module import name as name`.

    A line `from package import module as module` makes a module of the package a name of it.
    """
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module]
    module_of = {alias.name: str(node.module) for node in imports for alias in node.names}

    def find(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        where = module_of[name]
        value = import_module(f"{where}.{name}") if where == package else getattr(import_module(where), name)
        setattr(sys.modules[package], name, value)  # bypasses this function in later look-ups
        return value

    public = sorted(name for name, where in module_of.items() if where != package)
    return find, lambda: sorted({*module_of, "__version__", "__doc__"}), public
