"""Puts beside the live page of the site what it runs: `python docs/live_assets.py site [folder of Pyodide]`.

The wheel of this tree, a recorded run that the page shows until Python is there, and a copy of Pyodide if one is given.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from live.live import Demo

ROUNDS = 240
DIGITS = 4
# Seconds since 1970 at which all files of the wheel are said to have changed.
CHANGED = 1_577_836_800


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
    """Build the wheel for any Python from this tree: without a network, with the same bytes each time."""
    environment = os.environ | {"ORCAST_BUILD": "pure", "SOURCE_DATE_EPOCH": str(CHANGED)}
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as made:
        places = ["egg_info", "--egg-base", made, "build", "--build-base", f"{made}/build"]
        wheel = ["bdist_wheel", "--bdist-dir", f"{made}/wheel", "--dist-dir", str(folder.resolve())]
        build = [sys.executable, "setup.py", "-q", *places, *wheel]
        subprocess.run(build, cwd=root, env=environment, capture_output=True, check=True)
    (found,) = folder.glob("orcast-*.whl")
    return found


def write(site: Path, pyodide: Path | None = None) -> None:
    """Write them into the folder of the site."""
    folder = site.resolve() / "live"
    (folder / "recorded.js").write_text(recorded(build_wheel(folder).name), encoding="utf-8")
    if pyodide is not None:
        shutil.copytree(pyodide, site / "pyodide", dirs_exist_ok=True)


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
