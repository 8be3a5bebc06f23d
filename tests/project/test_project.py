"""What a public project says of itself in several files says the same in all of them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import orcast

ROOT = Path(__file__).resolve().parents[2]
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = SETTINGS["project"]
HOME: str = PROJECT["urls"]["Homepage"]
BOUND = re.compile(r"([\w-]+)>=([\w.]+)")
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def yaml(path: Path) -> Any:
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(path.read_text(encoding="utf-8"))


def jobs() -> dict[str, Any]:
    return {
        f"{path.stem} {name}": job
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for name, job in yaml(path)["jobs"].items()
    }


def test_every_target_that_a_workflow_makes_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", text("Makefile"), re.MULTILINE))
    runs = [step["run"] for job in jobs().values() for step in job["steps"] if "run" in step]
    made = {target for run in runs for target in re.findall(r"\bmake ([a-z0-9-]+)", run)}
    assert {"test", "test-lowest", "docs", "dist"} <= made <= targets


def test_workflows_without_make_run_the_core_as_make_does() -> None:
    core = re.search(r"^CORE +:= (.+)$", text("Makefile"), re.MULTILINE)
    assert core is not None
    runs = [step.get("run", "") for step in jobs()["tests core"]["steps"]]
    assert any(core[1] in run for run in runs)
    # the shells of Windows know no make, and take no sh
    assert not any("make" in run or "\n" in run for run in runs)


def test_all_versions_of_python_are_tested_that_are_promised() -> None:
    promised = [version for each in PROJECT["classifiers"] if (version := each.rpartition(" :: ")[2]).startswith("3.")]
    assert PROJECT["requires-python"] == f">={promised[0]}"
    for name in ("tests gate", "tests core"):
        assert jobs()[name]["strategy"]["matrix"]["python"] == promised
    assert jobs()["tests lowest"]["steps"][1]["with"]["python-version"] == promised[0]


def test_the_lowest_versions_are_those_that_are_promised() -> None:
    extras = PROJECT["optional-dependencies"]
    lines = [*SETTINGS["build-system"]["requires"], *PROJECT["dependencies"], *extras["cli"], *extras["demo"]]
    bounds = dict(BOUND.findall("\n".join(lines)))
    pins = dict(PIN.findall(text("constraints-lowest.txt")))
    assert {"setuptools", "Cython", "numpy", "scipy", "narwhals"} < bounds.keys()
    assert {name: Version(pins[name]) for name in bounds} == {name: Version(bounds[name]) for name in bounds}


def test_versions_agree() -> None:
    assert f"\nversion: {orcast.__version__}\n" in text("CITATION.cff")
    assert re.search(rf"^## (Unreleased: |\[?){re.escape(orcast.__version__)}\b", text("CHANGELOG.md"), re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    ["CITATION.cff", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml", "pyproject.toml", "setup.py"],
)
def test_there_is_one_address(name: str) -> None:
    found = re.findall(r"https://(?:github|raw\.githubusercontent)\.com/[\w-]+/[\w-]+", text(name))
    assert found
    assert {address.replace("raw.githubusercontent", "github") for address in found} == {HOME}


def test_hooks_are_local() -> None:
    hooks = yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in hooks] == ["local"]
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks[0]["hooks"])


def test_licences_are_listed_with_the_versions_that_are_tested() -> None:
    lines = [*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)]
    needed = {canonicalize_name(Requirement(line).name) for line in lines} - {"orcast"}
    rows = re.findall(r"^\| ([\w.-]+) \| (\S+) \| (.+) \|$", text("docs/licences.md"), re.MULTILINE)
    listed = {name: version for name, version, _ in rows if name != "package"}
    pins = {canonicalize_name(name): version for name, version in PIN.findall(text("constraints.txt"))}
    assert needed == {name for name in needed if listed.get(name) == pins[name]}
    assert not any(re.search(r"unknown|proprietary|\bA?GPL", licence, re.IGNORECASE) for _, _, licence in rows)
