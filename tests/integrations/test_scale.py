"""Recipes of docs/howto/ray-dask.md, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "ray-dask.md"


@pytest.mark.slow
@pytest.mark.parametrize("library", ["ray", "dask.dataframe"])
def test_recipe_equals_one_frame(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    first, *recipes = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (recipe,) = (each for each in recipes if f"import {library}" in each)
    (tmp_path / "recipe.py").write_text(first + recipe, encoding="utf-8")
    done = subprocess.run([sys.executable, "recipe.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
