"""Versions and licences of the dependencies, as the installed packages state them: `make licences`.

Writes docs/licences.md.  Run where everything of `orcast[dev]` is installed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
# What users of the extra get; those of the others are for work on orcast itself.
GROUPS = {
    "cli": "`orcast[cli]`: the command on tables",
    "serve": "`orcast[serve]`: the HTTP service",
    "demo": "`orcast[demo]`: pictures",
    "research": "`orcast[research]`: the comparison, the paper's experiments, benchmarks",
    "river": "`orcast[river]`",
    "sklearn": "`orcast[sklearn]`",
    "nixtla": "`orcast[nixtla]`",
    "sktime": "`orcast[sktime]`",
    "gluonts": "`orcast[gluonts]`",
    "spark": "`orcast[spark]`",
    "scale": "`orcast[scale]`: Ray and Dask",
    "postgresql": "`orcast[postgresql]`: a store in PostgreSQL",
    "test": "`orcast[test]`: to test orcast",
    "docs": "`orcast[docs]`: to build these pages",
    "dev": "`orcast[dev]`: to work on orcast",
}
# Longer texts are whole licences, not their names.
NAME_LENGTH = 60
# Classifiers that name a family of licences.
VAGUE = {"OSI Approved", "BSD License", "Other/Proprietary License"}


def licence(name: str) -> str:
    """Licence of an installed package: its expression, its classifiers, or its text, in this order."""
    metadata = distribution(name).metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", []) if each.startswith("License :: ")
    ]
    stated = (metadata.get("License") or "").strip()
    if 0 < len(stated) <= NAME_LENGTH and "\n" not in stated and (not classified or set(classified) <= VAGUE):
        return stated
    if classified:
        return ", ".join(classified)
    raise SystemExit(f"expected a package that states its licence, got {name}")


def requirements(lines: Iterable[str]) -> Iterator[str]:
    """Names of the required packages, without orcast's own extras."""
    for line in lines:
        name = canonicalize_name(Requirement(line).name)
        if name != "orcast":
            yield name


def brought(names: Iterable[str]) -> set[str]:
    """Installed dependencies of packages, without their extras."""
    found: set[str] = set()
    left = list(names)
    while left:
        for line in distribution(left.pop()).requires or []:
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            name = canonicalize_name(requirement.name)
            try:
                distribution(name)
            except PackageNotFoundError:
                continue
            if name not in found:
                found.add(name)
                left.append(name)
    return found


def table(names: Iterable[str]) -> Iterator[str]:
    """Rows of names, versions and licences."""
    yield "| package | version | licence |"
    yield "|---|---|---|"
    for name in sorted(set(names)):
        yield f"| {name} | {distribution(name).version} | {licence(name)} |"


def page() -> Iterator[str]:
    """The page, line by line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    if extras.keys() != GROUPS.keys():
        raise SystemExit(f"expected the extras {', '.join(GROUPS)}, got {', '.join(extras)}")
    always = list(requirements(project["dependencies"]))
    yield "# Licences"
    yield ""
    yield (
        "orcast is under the MIT licence. These are the licences of what it needs, as the packages state them, with "
        "the versions that it is tested with (`constraints.txt`). `make licences` writes this page."
    )
    yield ""
    yield "## Always"
    yield from table(always)
    for extra, title in GROUPS.items():
        yield ""
        yield f"## {title}"
        yield from table(requirements(extras[extra]))
    named = {*always, *(name for lines in extras.values() for name in requirements(lines))}
    yield ""
    yield "## What these need in turn"
    yield from table(brought(named) - named)


if __name__ == "__main__":
    PAGE.write_text("\n".join(page()) + "\n", encoding="utf-8")
