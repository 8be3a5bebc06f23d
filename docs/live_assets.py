"""Puts beside the live page of the site what it runs: `python docs/live_assets.py site [folder of Pyodide]`.

The wheel of this tree, a recorded run that the page shows until Python is there, and a copy of Pyodide if one is given.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from live.live import Demo

ROUNDS = 240
DIGITS = 4


def rounded(value: object) -> object:
    """The numbers of a round with the digits that a picture needs."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, DIGITS) if isinstance(value, float) else value


def recorded(wheel: str, rounds: int = ROUNDS) -> str:
    """A run with drift and the name of the wheel, as a script: a page that was opened as a file may read no other."""
    demo = Demo()
    said = {"wheel": wheel, "rows": [rounded(demo.step()) for _ in range(rounds)]}
    return f"window.orcastRecorded = {json.dumps(said)};\n"


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, the same bytes each time, without a network."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder.resolve())]
    subprocess.run(build, cwd=Path(__file__).resolve().parents[1], capture_output=True, check=True)
    (wheel,) = folder.glob("orcast-*.whl")
    return wheel


def write(site: Path, pyodide: Path | None = None) -> None:
    """Write them into the folder of the site."""
    folder = site.resolve() / "live"
    (folder / "recorded.js").write_text(recorded(build_wheel(folder).name), encoding="utf-8")
    if pyodide is not None:
        shutil.copytree(pyodide, site / "pyodide", dirs_exist_ok=True)


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
