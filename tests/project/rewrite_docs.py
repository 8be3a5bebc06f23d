"""Rewrite the printed outputs of pages: `python tests/project/rewrite_docs.py [PAGE ...]`, by default of all."""

import os
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from test_docs import BLOCK, RUN, SLOW, is_said, quoted_verdict


def rewrite(page: Path) -> int:
    """Run the blocks of a page, replace each output that differs, and return how many did."""
    text, parts, end, changed = page.read_text(encoding="utf-8"), [], 0, 0
    module = sys.modules["page"] = ModuleType("page")
    for found in BLOCK.finditer(text):
        with redirect_stdout(StringIO()) as said:
            exec(compile(found[1], str(page), "exec"), module.__dict__)
        if found[2] is not None and not is_said(found[2], said.getvalue()):
            parts += [text[end : found.start(2)], said.getvalue()]
            end, changed = found.end(2), changed + 1
    if page.name == "start.md":
        text = "".join([*parts, text[end:]])
        quoted, printed = quoted_verdict(text)
        for old, new in zip(quoted, printed, strict=False):
            text, changed = text.replace(f"> - {old}\n", f"> - {new}\n"), changed + (old != new)
        parts, end = [], 0
    if changed:
        page.write_text("".join([*parts, text[end:]]), encoding="utf-8")
    return changed


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    pages = [Path(name).resolve() for name in sys.argv[1:]] or [page for page in RUN if page.name not in SLOW]
    for page in pages:
        with TemporaryDirectory() as folder, chdir(folder):
            print(f"{page.name}: {rewrite(page)} outputs changed")
