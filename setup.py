"""Build of orcast: the kernels are compiled where there is a C compiler; without one the same files run as Python.

ORCAST_BUILD=compiled makes a build without compiled kernels an error (releases), ORCAST_BUILD=pure compiles nothing (a
wheel for any Python). ORCAST_CHECKED=1 compiles with AddressSanitizer and bounds checks (`make test-checked`).
"""

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from textwrap import shorten

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FOLDERS = [Path("src/orcast/kernels"), Path("src/orcast/committee")]
SUFFIXES = (".so", ".pyd")
MODE = os.environ.get("ORCAST_BUILD", "")
CHECKED = os.environ.get("ORCAST_CHECKED", "") == "1"
# One extension module for every CPython from 3.11 on; those without a GIL have no stable ABI.
STABLE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,  # division by zero gives inf and nan, as in C
    "infer_types": True,
    "binding": False,
    "warn.unreachable": False,  # branches for uncompiled code
}
# No fused multiply-add and no reordering: every compiler gives the same numbers.
if sys.platform == "win32":
    FLAGS, LINK_FLAGS = ["/O2", "/fp:precise"], []
elif CHECKED:
    LINK_FLAGS = ["-fsanitize=address"]
    FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", *LINK_FLAGS]
else:
    FLAGS, LINK_FLAGS = ["-O3", "-ffp-contract=off", "-g0"], []


class BuildPython(build_py):
    """Copy of the Python files."""

    def run(self):
        """Copy them anew, so that a wheel has no file of an earlier build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildKernels(build_ext):
    """Compilation of all kernels or none: compiled modules call each other in C."""

    def finalize_options(self):
        """Use all cores."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        """Translate the kernels to C and compile them, or go without."""
        self.in_tree = bool(self.inplace)  # an error may leave `inplace` changed
        if not self.extensions:
            self.remove_others()
            return
        try:
            from Cython.Build import cythonize
        except ImportError:
            self.go_without("Cython is not installed")
            return
        # an error in a kernel's source is no reason to go without: it is raised
        made = cythonize(self.extensions, compiler_directives=DIRECTIVES, build_dir=f"{self.build_temp}/c", quiet=True)
        sources = {extension.name: extension.sources for extension in made}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        try:
            super().run()
        except Exception as error:  # each compiler raises its own
            self.go_without(f"the C compiler failed: {shorten(str(error), 80)}")
        self.remove_others()

    def go_without(self, reason):
        """Leave the kernels as Python, in a wheel for any Python; an error if they must be compiled."""
        if MODE == "compiled":
            raise SystemExit(f"orcast: the kernels cannot be compiled: {reason}")
        print(f"orcast: no compiled kernels ({reason}); they run as Python, about 100x slower", file=sys.stderr)
        self.extensions = self.distribution.ext_modules = []
        self.remove_others()
        wheel = self.distribution.get_command_obj("bdist_wheel", create=False)
        if wheel is not None:
            wheel.root_is_pure, wheel.py_limited_api = True, False

    def remove_others(self):
        """Remove compiled modules of earlier builds that have no source any more, or all if none is compiled."""
        names = {extension.name for extension in self.extensions}
        for source in FOLDERS:
            for folder in (Path(self.build_lib, *source.parts[1:]), *([source] if self.in_tree else [])):
                for path in folder.glob("*.*"):
                    name = f"orcast.{source.name}.{path.name.partition('.')[0]}"
                    if path.suffix in SUFFIXES and name not in names:
                        path.unlink()


def extensions():
    """Compiled modules: each file of the kernels with a .pxd beside it."""
    if MODE not in ("", "compiled", "pure"):
        raise SystemExit(f"expected ORCAST_BUILD=compiled, pure or nothing, got {MODE!r}")
    sources = sorted(path.with_suffix(".py") for folder in FOLDERS for path in folder.glob("*.pxd"))
    if MODE == "pure":
        return []
    return [
        Extension(
            f"orcast.{path.parent.name}.{path.stem}",
            [str(path)],
            extra_compile_args=FLAGS,
            extra_link_args=LINK_FLAGS,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
            py_limited_api=STABLE,
        )
        for path in sources
        if path.stem != "__init__"
    ]


def readme():
    """README for the package index, where no files lie beside it: links lead to the files of the release."""
    version = re.search(r'^__version__ = "(.+)"', Path("src/orcast/__init__.py").read_text("utf-8"), re.MULTILINE)[1]
    text = Path("README.md").read_text("utf-8")
    files, pictures = "https://github.com/orcast/orcast/blob", "https://raw.githubusercontent.com/orcast/orcast"
    text = re.sub(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)", rf"![\1]({pictures}/v{version}/\2)", text)
    return re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", rf"]({files}/v{version}/\1)", text)


kernels = extensions()
setup(
    ext_modules=kernels,
    cmdclass={"build_ext": BuildKernels, "build_py": BuildPython},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if kernels and STABLE else {},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
