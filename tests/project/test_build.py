"""Build of the package: contents of the wheel, links of its README, and builds without a C compiler."""

import os
import re
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import orcast

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "orcast"

pytest.importorskip("setuptools", minversion="77.0.1")


def setup(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run setup.py; all that it makes goes to a folder."""
    places = ["egg_info", "--egg-base", str(folder), "build", "--build-base", str(folder / "build")]
    return subprocess.run(
        [sys.executable, "setup.py", "-q", *places, *command],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Wheel for any Python."""
    folder = tmp_path_factory.mktemp("wheel")
    done = setup(folder, "bdist_wheel", "-b", str(folder / "wheel"), "-d", str(folder), ORCAST_BUILD="pure")
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(folder / f"orcast-{orcast.__version__}-py3-none-any.whl")


def test_wheel_has_the_package_and_no_files_of_the_compiler(wheel: zipfile.ZipFile) -> None:
    left_out = {".so", ".pyd", ".pyc"}
    files = {str(path.relative_to(ROOT / "src")) for path in PACKAGE.rglob("*.*") if path.suffix not in left_out}
    assert {name for name in wheel.namelist() if not name.startswith("orcast-")} == files
    assert {"orcast/py.typed", "orcast/__init__.pyi", "orcast/data/SOURCES.md"} < files


def test_metadata_of_the_wheel(wheel: zipfile.ZipFile) -> None:
    metadata = BytesParser().parsebytes(wheel.read(f"orcast-{orcast.__version__}.dist-info/METADATA"))
    needed = {line.split(">=")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {"numpy", "scipy", "narwhals"}
    assert metadata["License-Expression"] == "MIT"
    links = re.findall(r"\]\((?!#)([^)\s]+)\)", str(metadata.get_payload()))
    assert links
    assert all(link.startswith("https://") for link in links)
    assert f"https://github.com/orcast/orcast/blob/v{orcast.__version__}/docs/start.md" in links
    assert f"https://raw.githubusercontent.com/orcast/orcast/v{orcast.__version__}/docs/images/demo.png" in links


def test_unknown_kind_of_build_is_refused(tmp_path: Path) -> None:
    done = setup(tmp_path, ORCAST_BUILD="fast")
    assert done.returncode == 1
    assert done.stderr == "expected ORCAST_BUILD=compiled, pure or nothing, got 'fast'\n"


@pytest.mark.slow
def test_build_without_a_compiler_warns_unless_it_must_compile(tmp_path: Path) -> None:
    pytest.importorskip("Cython")
    build = ("build_ext", "--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp"))
    done = setup(tmp_path, *build, CC="/bin/false", ORCAST_BUILD="")
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if line.startswith("orcast: ")]
    assert len(said) == 1
    assert said[0].startswith("orcast: no compiled kernels (the C compiler failed: ")
    assert said[0].endswith("); they run as Python, about 100x slower")
    assert not [*tmp_path.rglob("*.so")]
    done = setup(tmp_path, *build, CC="/bin/false", ORCAST_BUILD="compiled")
    assert done.returncode == 1
    assert "\norcast: the kernels cannot be compiled: the C compiler failed: " in done.stderr
