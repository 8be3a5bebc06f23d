"""Run the tutorials: `python docs/notebooks.py [PAGE ...]` rewrites their pictures, printed outputs and notebooks.

The pages in docs/tutorials are the source.  A notebook has the text and code of its page, with the outputs that the
page quotes and the pictures that it shows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from base64 import b64encode
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent / "tutorials"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")
# A block of code, and the printed output or the picture that follows at once.
BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\n?^```text\n(.*?)^```\n)?(?:\n?^!\[[^\]]*\]\(([^)]+)\)\n)?", re.DOTALL | re.MULTILINE
)


def run(page: Path) -> None:
    """Run the code of a page; write the outputs that it quotes into it, and the pictures beside it."""
    text, parts, end = page.read_text("utf-8"), [], 0
    module = sys.modules["page"] = ModuleType("page")
    with TemporaryDirectory() as folder, chdir(folder):
        for found in BLOCK.finditer(text):
            with redirect_stdout(StringIO()) as printed:
                exec(compile(found[1], page.name, "exec"), module.__dict__)
            if found[2] is not None:
                parts += [text[end : found.start(2)], printed.getvalue()]
                end = found.end(2)
            if found[3] is not None:
                shutil.copy(found[3], page.parent)
    page.write_text("".join([*parts, text[end:]]), "utf-8")


def notebook(page: Path) -> str:
    """Make the notebook of a page from its text and pictures, without running it."""
    text, cells, end = page.read_text("utf-8"), [], 0
    for found in BLOCK.finditer(text):
        cells += [*_markdown(text[end : found.start()]), _code(page, found, len(cells))]
        end = found.end()
    cells += _markdown(text[end:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _markdown(text: str) -> list[dict[str, Any]]:
    return [{"cell_type": "markdown", "metadata": {}, "source": text.strip()}] if text.strip() else []


def _code(page: Path, found: re.Match[str], count: int) -> dict[str, Any]:
    outputs: list[dict[str, Any]] = []
    if found[2] is not None:
        outputs.append({"name": "stdout", "output_type": "stream", "text": found[2]})
    if found[3] is not None:
        data = {"image/png": b64encode((page.parent / found[3]).read_bytes()).decode("ascii")}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    source = {"cell_type": "code", "execution_count": count + 1, "metadata": {}, "source": found[1].strip("\n")}
    return {**source, "outputs": outputs}


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        run(page)
        page.with_suffix(".ipynb").write_text(notebook(page), "utf-8")
        print(page.stem)
