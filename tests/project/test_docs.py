"""Every python block of README.md and docs runs, in the order of its page, and prints the quoted output."""

import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

import orcast as oc
from orcast.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if p.exists()]
SLOW = ("spark.md",)  # starts a session of Spark
APART = ("ray-dask.md",)  # run by tests/integrations/test_scale.py
RUN = [page for page in PAGES if page.name not in APART]
QUICK_AND_SLOW = [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in RUN]
# A block of code, and what it prints if a block of text follows at once.
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```[ \t]*$(?:\n\n?^```text\n(.*?)^```[ \t]*$)?", re.DOTALL | re.MULTILINE)
# Links to files of this repository, without what follows a #.
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Pictures that stand alone on a line.
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+\.png)\)$", re.MULTILINE)
# Public names, in code or in the text.
NAME = re.compile(r"(?<![\w.`/])`?oc\.([A-Za-z_]+(?:\.[a-z_]+)*)")


def blocks(text: str) -> list[tuple[int, str, str | None]]:
    """The python blocks of a page, each with the number of its first line, and what the page says that they print."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1), m.group(2)) for m in BLOCK.finditer(text)]


def is_said(told: str, said: str) -> bool:
    """Whether a page says what its code prints; other processors round otherwise, so last digits may differ by one."""
    theirs, ours = NUMBER.findall(told), NUMBER.findall(said)
    if len(theirs) == len(ours):
        near = iter(a if is_near(a, b) else b for a, b in zip(theirs, ours, strict=True))
        said = NUMBER.sub(lambda _: next(near), said)
    return OutputChecker().check_output(told, said, NORMALIZE_WHITESPACE | ELLIPSIS)


def is_near(told: str, said: str) -> bool:
    digits = len(told.partition(".")[2])
    return abs(float(told.replace(",", "")) - float(said.replace(",", ""))) < 1.5 * 10.0**-digits


@pytest.mark.filterwarnings("ignore:Using `json`-module:UserWarning")  # of GluonTS
@pytest.mark.filterwarnings("ignore:The default of config ``remember_data``:FutureWarning")  # of sktime
@pytest.mark.parametrize("page", QUICK_AND_SLOW, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # A real module, so that classes defined in a page can be looked up (dataclasses and pickle do that).
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for line, code, told in blocks(page.read_text(encoding="utf-8")):
        with redirect_stdout(StringIO()) as said:
            # Empty lines in front make a traceback name the line of the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), module.__dict__)
        assert told is None or is_said(told, said.getvalue()), (
            f"line {line} of {page.relative_to(ROOT)} says now:\n{said.getvalue()}"
        )
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    for name in PICTURE.findall(page.read_text(encoding="utf-8")):
        if (page.parent / name).parent == page.parent:
            assert_alike(tmp_path / name, page.parent / name)


def assert_alike(drawn: Path, committed: Path) -> None:
    """The code of a page draws the picture that it shows; fonts may differ."""
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    ours, theirs = image.imread(drawn), image.imread(committed)
    assert ours.shape == theirs.shape
    assert abs(ours - theirs).mean() < 0.02, f"{committed.name} is not what the page draws"


def quoted_verdict(text: str) -> tuple[list[str], list[str]]:
    """Lines of the verdict that docs/start.md quotes, and the lines that its last command prints."""
    (code,) = (code for _, code, _ in blocks(text) if "to_csv" in code)
    exec(compile(code, "start.md", "exec"), {})
    (commands,) = re.findall(r"^```sh\n(orcast check.*?)^```", text, re.DOTALL | re.MULTILINE)
    for command in commands.splitlines():
        with redirect_stderr(StringIO()) as printed:
            assert main(command.split()[1:]) == 0
    lines = printed.getvalue().splitlines()
    columns = max(i for i, line in enumerate(lines) if line.startswith("  "))
    return re.findall(r"^> - (.*)$", text, re.MULTILINE), lines[columns + 1 :]


def test_commands_say_what_the_first_page_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    quoted, printed = quoted_verdict(text)
    assert len(quoted) >= 2
    assert printed[: len(quoted)] == quoted
    # the gains without and with issue times
    (most, gain) = re.findall(r"here (\S+), with issue times (\S+)\.", text)[0]
    assert f"{gain} lower (95% interval" in printed[0]
    _, printed = quoted_verdict(text.replace(" --issued-every 24", ""))
    assert f"up to {most} lower" in " ".join(printed)


def test_the_online_loop_of_the_readme_can_be_pasted_into_an_interpreter(tmp_path: Path) -> None:
    (code,) = (code for _, code, _ in blocks((ROOT / "README.md").read_text("utf-8")) if "recal.save" in code)
    told = subprocess.run([sys.executable, "-iq"], input=code, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Error" not in told.stderr, told.stderr
    assert re.search(r"2 rounds: miscalibration \S+ <= promised", told.stdout)
    assert (tmp_path / "wind.orcast").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_that_are_mentioned_exist(page: Path) -> None:
    for path in NAME.findall(page.read_text(encoding="utf-8")):
        at: object = oc
        for name in path.split("."):
            at = getattr(at, name)


def test_files_of_the_architecture_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]*(?:\w\.(?:py|md|toml|yml)|\w/))`", page)) - {"src/orcast/committee/last.py"}
    missing = {name for name in named if not (ROOT / name).exists() and not (ROOT / "src" / "orcast" / name).exists()}
    assert len(named) > 60
    assert missing == {"committee/NAME.py", "tests/committee/test_last.py"}


def test_tables_have_at_most_six_columns() -> None:
    wide = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and len(line.replace("\\|", "").split("|")) > 8
    ]
    assert wide == []


def test_every_page_is_in_the_navigation() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

    def leaves(node: object) -> list[str]:
        if isinstance(node, str):
            return [node]
        return [leaf for inner in (node.values() if isinstance(node, dict) else node) for leaf in leaves(inner)]

    listed = leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(listed) == sorted(p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").glob("**/*.md"))
