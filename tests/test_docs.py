"""Every python block of README.md and docs/*.md runs, those of one file one after the other."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if p.exists()]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


def blocks(text: str) -> list[tuple[int, str]]:
    """The python blocks of a page, each with the number of its first line."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # A real module, so that classes defined in a page can be looked up (dataclasses and pickle do that).
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for line, code in blocks(page.read_text(encoding="utf-8")):
        # Empty lines in front make a traceback name the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), module.__dict__)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_blocks_are_found_with_their_lines() -> None:
    text = "one\n```python\na = 1\n```\n```bash\nls\n```\n```python\nb = a\nc = b\n```\n"
    assert blocks(text) == [(3, "a = 1\n"), (9, "b = a\nc = b\n")]
