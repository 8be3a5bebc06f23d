"""Numerical kernels: plain Python files with C types in the `.pxd` files beside them, compiled ahead of time by Cython.

A kernel uses the names that its `.pxd` file imports.  Without a C compiler the same files run as Python, with the same
results to the last bit (`pure`).  Kernels work on state objects (`state`) and rows of numbers; they do not know the
objects of the public interface, and they trust their input.

ORCAST_KERNELS=python in the environment takes the Python files even if compiled ones lie beside them.
"""

import os
import sys
import warnings
from importlib.machinery import SOURCE_SUFFIXES, FileFinder

COMPILED = any(name.endswith((".so", ".pyd")) for name in os.listdir(__path__[0]))
if not COMPILED or os.environ.get("ORCAST_KERNELS") == "python":
    from orcast.kernels.pure import PlainLoader

    for folder in (__path__[0], os.path.join(os.path.dirname(__path__[0]), "committee")):
        sys.path_importer_cache[folder] = FileFinder(folder, (PlainLoader, SOURCE_SUFFIXES))
    if not COMPILED and sys.platform != "emscripten" and os.environ.get("ORCAST_KERNELS") != "python":
        warnings.warn(
            "the kernels of orcast are not compiled and run as Python, about 100 times slower: install a C compiler "
            "and install orcast again, or set ORCAST_KERNELS=python to use them as they are",
            RuntimeWarning,
            stacklevel=2,
        )
