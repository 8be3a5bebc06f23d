"""Write a set: `python -m tests.golden.write tests/golden/v2 [NAME ...]`, from the root of the repository."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

# what the tests share is found as they find it
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orcast as oc

from .cases import Case, cases
from .players import PLAYERS

ABOUT = "about.json"
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "gluonts")


def main() -> None:
    """Write the states that are asked for, or all, where there are none of these names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the set, such as tests/golden/v2")
    parser.add_argument("names", nargs="*", help="only these")
    options = parser.parse_args()
    chosen = [case for case in cases() if not options.names or case.name in options.names]
    unknown = set(options.names) - {case.name for case in chosen}
    if unknown:
        raise SystemExit(f"expected names of states, got {', '.join(sorted(unknown))}")
    for case in chosen:
        if list(options.folder.glob(f"{case.name}.*")):
            raise SystemExit(f"expected a set without {case.name}, got one that has it: it is written once")
    options.folder.mkdir(exist_ok=True)
    for case in chosen:
        size = write(case, options.folder)
        print(f"{case.name:24} {size:7} bytes", flush=True)
    (options.folder / ABOUT).write_text(json.dumps(_about(), indent=1) + "\n")


def write(case: Case, folder: Path) -> int:
    """Write one state, and what comes of it; how many bytes it has."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / case.name
        player = case.begin(path)
        for step in case.before:
            player.play(step)
        player.save(path)
        files = list(Path(scratch).iterdir())
        for file in files:
            copy(file, folder)
        size = sum(each.stat().st_size for file in files for each in (file, *file.rglob("*")) if each.is_file())
        player = PLAYERS[case.kind].load(path, case.options)
        answers = [player.play(step) for step in case.after]
        player.save(path)
    story = {"kind": case.kind, "options": case.options, "steps": case.after, "answers": answers}
    (folder / f"{case.name}.json").write_text(_text(story))
    return size


def copy(file: Path, folder: Path) -> None:
    """Copy a file, or a folder with all that is in it."""
    if file.is_dir():
        shutil.copytree(file, folder / file.name)
    else:
        shutil.copy(file, folder)


def _text(story: dict[str, Any]) -> str:
    """JSON with a line for each step and each answer, so that a difference can be read."""
    parts = []
    for key, value in story.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(each, allow_nan=False, separators=(',', ':'))}" for each in value)
            parts.append(f' "{key}": [\n{lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _about() -> dict[str, Any]:
    """Who wrote it: to the last bit the answers are those of this kind of machine, and of these versions."""
    from llvmlite import binding  # type: ignore[import-untyped]

    return {
        "orcast": oc.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": f"{platform.machine()}, {binding.get_host_cpu_name()}",
        **{name: version(name) for name in LIBRARIES},
    }


if __name__ == "__main__":
    main()
