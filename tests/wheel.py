"""Try an installed wheel, given its file name: `python tests/wheel.py dist/orcast-0.1.0-py3-none-any.whl`.

The environment needs orcast and its dependencies only. The online loop of the README runs, a few of the frozen
answers are compared, and the kernels must be compiled exactly if the wheel is made for a platform.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

import orcast
from frozen.answers import arrays, read
from frozen.cases import CASES
from orcast.kernels import rows

ROOT = Path(__file__).resolve().parents[1]
TRIED = ("interval_loop", "batch_run", "several_experts", "binary", "labels", "orca")


def example() -> None:
    """Run the online loop of the README, in a folder of its own."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "recal.save" in block)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(code, {})
        os.chdir(ROOT)


def compare(case: str) -> None:
    """Compare the answers of a case with the frozen ones."""
    frozen, found = read(case), arrays(case, CASES[case].run())
    assert found.keys() == frozen.keys()
    for key, want in frozen.items():
        if want.dtype.kind == "f":
            np.testing.assert_allclose(found[key], want, rtol=1e-9, atol=1e-9, equal_nan=True, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], want, err_msg=key)


def main(wheel: str) -> None:
    """Check where the package and its kernels come from, and run them."""
    package, kernels = Path(orcast.__file__).resolve(), Path(rows.__file__ or "")
    if package.is_relative_to(ROOT / "src"):
        raise SystemExit(f"expected an installed wheel, got the source tree {package.parent}")
    compiled = not wheel.endswith("-none-any.whl")
    if compiled is (kernels.suffix == ".py"):
        raise SystemExit(f"expected {'compiled' if compiled else 'Python'} kernels in {wheel}, got {kernels.name}")
    example()
    for case in TRIED:
        compare(case)
    print(f"{Path(wheel).name}: the README's online loop and {len(TRIED)} frozen cases pass ({kernels.name})")


if __name__ == "__main__":
    main(sys.argv[1])
