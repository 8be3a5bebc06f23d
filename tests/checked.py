"""`make test-checked`: the tests of the kernels, compiled with AddressSanitizer and bounds checks (Linux, gcc).

The checked kernels and a copy of the package are built into build/checked; the compiled kernels in src/ stay as they
are. Arguments are passed to pytest; without any, it runs the tests of the kernels and the frozen answers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "build" / "checked" / "orcast"
TESTS = ("tests/kernels", "tests/frozen")


def build() -> None:
    """Copy the package and compile its kernels beside the copy, those that changed."""
    for path in PACKAGE.rglob("*.py"):
        path.unlink()
    compiled = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src" / "orcast", PACKAGE, ignore=compiled, dirs_exist_ok=True)
    places = ["--build-lib", str(PACKAGE.parent), "--build-temp", str(PACKAGE.parent / "temp")]
    environment = os.environ | {"ORCAST_BUILD": "compiled", "ORCAST_CHECKED": "1"}
    command = [sys.executable, "setup.py", "-q", "build_ext", *places]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def libraries() -> str:
    """Libraries that must be loaded before all others: the sanitizer, and that of C++, whose exceptions it watches."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    found = []
    for name in ("libasan.so", "libstdc++.so"):
        path = Path(subprocess.check_output([*compiler, f"-print-file-name={name}"], text=True).strip())
        if not path.is_absolute():
            raise SystemExit(f"expected a gcc that has {name}, got {' '.join(compiler)}")
        found.append(str(path.resolve()))
    return " ".join(found)


def main(arguments: Sequence[str]) -> int:
    """Build, and run pytest on the checked kernels."""
    if sys.platform != "linux":
        raise SystemExit(f"expected Linux for checked kernels, got {sys.platform}")
    build()
    environment = os.environ | {
        "PYTHONPATH": str(PACKAGE.parent),
        "LD_PRELOAD": libraries(),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees little of its own at the end
        "PYTHONMALLOC": "malloc",  # each object has its own block, with a fence around it
    }
    where = "import orcast.kernels.rows as m; print(m.__file__)"
    found = subprocess.run([sys.executable, "-c", where], env=environment, capture_output=True, text=True, check=True)
    if not found.stdout.startswith(f"{PACKAGE}{os.sep}") or found.stdout.strip().endswith(".py"):
        raise SystemExit(f"expected checked kernels in {PACKAGE}, got {found.stdout.strip()}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
