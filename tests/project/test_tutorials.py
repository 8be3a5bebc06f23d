"""Tutorials: one source for page and notebook, small files, pictures drawn by the code that the page shows."""

import json
import re
from pathlib import Path
from runpy import run_path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MADE = run_path(str(DOCS / "notebooks.py"))
PAGES = MADE["PAGES"]
MOST_WORDS = 950
MOST_BYTES = {".ipynb": 300_000, ".png": 80_000}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_notebook_matches_its_page(page: Path) -> None:
    committed = page.with_suffix(".ipynb").read_text("utf-8")
    assert committed == MADE["notebook"](page), f"run: python docs/notebooks.py docs/tutorials/{page.name}"
    code = [cell for cell in json.loads(committed)["cells"] if cell["cell_type"] == "code"]
    text = page.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert [cell["source"] for cell in code] == [block.strip("\n") for block in blocks]
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert kinds == {"stream", "display_data"}
    assert f"]({page.stem}.ipynb)" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_short(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MOST_WORDS


def test_five_tutorials_of_small_files() -> None:
    assert len(PAGES) == 5
    used = {name for page in PAGES for name in re.findall(r"\]\(([\w-]+\.png)\)", page.read_text("utf-8"))}
    assert {path.name for path in MADE["FOLDER"].glob("*.png")} == used
    for path in MADE["FOLDER"].iterdir():
        assert path.stat().st_size <= MOST_BYTES.get(path.suffix, 20_000), path.name
