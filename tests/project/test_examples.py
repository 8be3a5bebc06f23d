"""Every example runs in its quick mode, shows something, leaves nothing behind, and keeps what it claims."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
LIMIT = 300  # seconds; kernels may have to be compiled first

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])")
PICTURE = re.compile(r"^picture: (.+)$", re.MULTILINE)
PNG = b"\x89PNG\r\n\x1a\n"


# --- what a text says ---


def numbers(line: str) -> list[float]:
    """The numbers of a line, those in percent as they stand."""
    return [float(found.replace(",", "")) for found in NUMBER.findall(line)]


def row(text: str, name: str) -> list[float]:
    """The numbers of the first line that begins with a name."""
    for line in text.splitlines():
        if line.strip().startswith(name):
            return numbers(line.strip().removeprefix(name))
    raise AssertionError(f"no line begins with {name!r} in\n{text}")


def last(text: str) -> list[float]:
    """The numbers of the last line."""
    return numbers(text.strip().splitlines()[-1])


def has_table(text: str) -> bool:
    """Whether two lines that follow each other have two numbers or more, in as many columns."""
    counts = [len(numbers(line)) for line in text.splitlines()]
    return any(one == other >= 2 for one, other in pairwise(counts))


# --- what each example claims: pairs of which the first is to be less than the second ---

Pairs = list[tuple[float, float]]


def adversary(text: str) -> Pairs:
    ours = row(text, "orcast")[-1]
    others = [row(text, name)[-1] for name in ("as given", "isotonic", "conformal (ACI)", "conformal PID")]
    below, _, _ = last(text)
    return [*((ours, other) for other in others), (ours, row(text, "promised")[-1] + 0.0011), (99.9, below)]


def before_and_after(text: str) -> Pairs:
    """The last line says an error as given, then ours."""
    before, after = last(text)
    return [(after, 0.5 * before)]


def own_payoff(text: str) -> Pairs:
    given, default, own = last(text)
    return [(default, given), (own, default)]


def river_drift(text: str) -> Pairs:
    jackknife, ours = row(text, "off by")
    return [(ours, jackknife), kept(text)]


def sklearn_quantiles(text: str) -> Pairs:
    return [(row(text, "orcast")[-1], row(text, "trees")[-1]), kept(text)]


def kept(text: str) -> tuple[float, float]:
    """Miscalibration and promise, if the last line is a guarantee."""
    found = re.search(r"rounds: miscalibration (\S+) <= promised (\S+), held 100.0%", text.strip().splitlines()[-1])
    assert found is not None
    return float(found[1]), float(found[2])


def gluonts_forecasts(text: str) -> Pairs:
    """The shares are nearer to the levels, and the promises are kept."""
    levels = [5.0, 25.0, 50.0, 75.0, 95.0]
    off = {name: sum(abs(a - b) for a, b in zip(row(text, name), levels, strict=False)) for name in ("NPTS", "orcast")}
    return [(off["orcast"], off["NPTS"]), kept(text)]


def nixtla_frame(text: str) -> Pairs:
    """Over models and levels the shares are nearer to the levels, and the intervals are narrower."""
    found = re.findall(r"(\d+)% +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", text, re.MULTILINE)
    rows = [[float(cell) for cell in cells] for cells in found]
    assert len(rows) >= 4
    before, after = (sum(abs(each[k] - each[0] / 100) for each in rows) for k in (1, 3))
    return [(after, before), (sum(each[4] for each in rows), sum(each[2] for each in rows))]


def spark_panel(text: str) -> Pairs:
    """The shares are nearer to 90%, and a stream says the same as the table."""
    pairs = []
    for name in ("humidity", "wind-haute-borne"):
        _, before, after, *_ = row(text, name)
        pairs.append((abs(after - 0.9), abs(before - 0.9)))
    *_, same, all_of_them = last(text)
    return [*pairs, (all_of_them - 0.5, same)]


def sktime_airline(text: str) -> Pairs:
    """The pinball loss is lower at each number of months ahead, of which each has two rows."""
    losses = dict(re.findall(r"^( *\d+ +(?:naive|orcast)) .* ([\d.]+)$", text, re.MULTILINE))
    found = {" ".join(name.split()): float(loss) for name, loss in losses.items()}
    return [(found[f"{step} orcast"], found[f"{step} naive"]) for step in (1, 6, 12)]


CLAIMS: dict[str, Callable[[str], Pairs]] = {
    "adversary": adversary,
    "events": before_and_after,
    "gluonts_forecasts": gluonts_forecasts,
    "labels": before_and_after,
    "nixtla_frame": nixtla_frame,
    "oil_price": before_and_after,
    "own_payoff": own_payoff,
    "river_drift": river_drift,
    "several_experts": lambda text: [(last(text)[0], 1.0)],
    "sklearn_quantiles": sklearn_quantiles,
    "sktime_airline": sktime_airline,
    "spark_panel": spark_panel,
    "wind_farm": lambda text: [(last(text)[2], 0.0)],
}
# What starts a cluster takes too long for the gate.
SLOW = {
    *("adversary", "labels", "nixtla_frame", "own_payoff", "several_experts", "sklearn_quantiles", "sktime_airline"),
    *("spark_panel", "wind_farm"),
}
# Their libraries warn of their own plans and tell of settings on the error stream.
CHATTY = {"sktime_airline", "spark_panel"}


# --- the examples ---


def run(name: str, folder: Path, *arguments: str) -> str:
    """What a copy of an example prints, run in an empty folder; its pictures go to the folder "out" beside it."""
    here, out, home = (folder / each for each in ("here", "out", "home"))
    for each in (here, out, home):
        each.mkdir()
    path = Path(shutil.copy(FOLDER / f"{name}.py", home))
    takes_folder = '"--out"' in path.read_text(encoding="utf-8")
    strict = [] if name in CHATTY else ["-W", "error"]
    command = [sys.executable, *strict, str(path), *arguments, *(["--out", str(out)] if takes_folder else [])]
    environment = {key: value for key, value in os.environ.items() if key != "ORCAST_DATA"} | {"MPLBACKEND": "agg"}
    told = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert told.returncode == 0, told.stderr
    assert not told.stderr or name in CHATTY, told.stderr
    assert not list(here.iterdir()), "files were left in the current folder"
    assert list(home.iterdir()) == [path], "files were left beside it"
    named = [Path(each) for each in PICTURE.findall(told.stdout)]
    assert sorted(out.iterdir()) == sorted(named), "the pictures are not those that were named"
    for picture in named:
        assert picture.read_bytes().startswith(PNG)
        assert picture.stat().st_size > 10_000
    assert named or has_table(told.stdout), told.stdout
    return told.stdout


def parameters(names: list[str]) -> list[object]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


@pytest.mark.parametrize("name", parameters(EXAMPLES))
def test_it_runs_and_keeps_its_claim(name: str, tmp_path: Path) -> None:
    text = run(name, tmp_path, "--quick")
    pairs = CLAIMS[name](text)
    assert pairs
    for less, more in pairs:
        assert less < more, text


def test_every_example_has_a_claim() -> None:
    assert len(EXAMPLES) >= 9
    assert set(EXAMPLES) == set(CLAIMS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_short_says_how_to_run_it_and_can_be_imported(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert 40 <= len(text.splitlines()) <= 100
    said = ast.get_docstring(tree)
    assert said is not None
    assert said.splitlines()[0].endswith((".", "?"))
    assert f"python examples/{name}.py [--quick]" in said
    mains = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main"]
    assert [each.arg for each in mains[0].args.args] == ["arguments"]
    assert '\nif __name__ == "__main__":\n' in text
    assert text.endswith("\n    main()\n")


# --- the page ---


def page() -> dict[str, list[str]]:
    """The rows of the table in examples/README.md by example: what it shows, the extras, its last line."""
    found = re.findall(
        r"^\| \[(\w+)\.py\]\(\1\.py\) \|(.*)\|$", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE
    )
    return {name: [cell.strip() for cell in rest.split(" | ")] for name, rest in found}


def test_the_page_lists_every_example() -> None:
    rows = page()
    assert sorted(rows) == EXAMPLES
    assert {len(cells) for cells in rows.values()} == {3}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_names_the_extras(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    imported = {line.split()[1].partition(".")[0] for line in text.splitlines() if re.match(r"(from|import) ", line)}
    needed = {"matplotlib": "demo", "river": "river", "sklearn": "sklearn", "statsforecast": "nixtla"}
    needed |= {"sktime": "sktime", "gluonts": "gluonts", "pyspark": "spark"}
    extras = set(re.findall(r"\w+", page()[name][1]))
    assert {needed[module] for module in imported & needed.keys()} <= extras


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_has_a_line_as_printed(name: str, tmp_path: Path) -> None:
    shown = page()[name][2].strip("`")
    lines = [" ".join(line.split()) for line in run(name, tmp_path).splitlines()]
    same = [line for line in lines if NUMBER.sub("#", line) == NUMBER.sub("#", shown)]
    # other processors and libraries may round otherwise
    assert any(numbers(line) == pytest.approx(numbers(shown), rel=0.03, abs=0.002) for line in same), lines


# --- the checks themselves ---


def test_numbers_are_read() -> None:
    assert numbers("  orcast   1,234   -0.5  12.3%   2e-05 at q0.5") == [1234.0, -0.5, 12.3, 2e-05]
    assert row("a table\n  as given  1  2\n  as given  3", "as given") == [1.0, 2.0]
    with pytest.raises(AssertionError, match="no line begins"):
        row("nothing", "orcast")


def test_a_table_is_told_from_prose() -> None:
    assert has_table("         5%   95%\ntrees  7.6%  97.5%")
    assert not has_table("3 rounds were played.\nIt took 5 seconds.\nNothing else 1 2")


TABLE = "print('a 1 2'); print('b 3 4')"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (f"{TABLE}; raise SystemExit(3)", "returncode"),
        ("print('It went well.')", "has_table"),
        (f"{TABLE}; open('litter.txt', 'w').close()", "current folder"),
        (f"{TABLE}; import sys; print('oh', file=sys.stderr)", "stderr"),
        (f"{TABLE}; import warnings; warnings.warn('oh')", "returncode"),
        (f"{TABLE}; print('picture: nowhere.png')", "pictures"),
        (f"{TABLE}; import sys, pathlib; pathlib.Path(sys.argv[-1], 'a.png').touch()", "pictures"),
        (f"{TABLE}; open(__file__ + '.txt', 'w').close()", "left beside"),
    ],
    ids=["fails", "shows nothing", "litters", "complains", "warns", "names no picture", "hides a picture", "spreads"],
)
def test_an_example_that_misbehaves_is_seen(
    code: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "examples"
    folder.mkdir()
    monkeypatch.setattr(sys.modules[__name__], "FOLDER", folder)
    (folder / "good.py").write_text(f"{TABLE}  # and no picture", encoding="utf-8")
    (folder / "bad.py").write_text(f'{code}  # takes "--out"', encoding="utf-8")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert run("good", tmp_path / "one") == "a 1 2\nb 3 4\n"
    with pytest.raises(AssertionError, match=why):
        run("bad", tmp_path / "two")


def test_a_claim_that_is_not_kept_is_seen() -> None:
    assert before_and_after("error: 0.08 as given, 0.01 with orcast") == [(0.01, 0.04)]
    (less, more), *_ = before_and_after("error: 0.08 as given, 0.07 with orcast")
    assert less > more
    pairs = own_payoff("off by 5.7% (as given), 0.2% (default), 0.6% (own payoff)")
    assert [a < b for a, b in pairs] == [True, False]
    (ours, theirs), _ = river_drift("  off by  2.8%  4.1%\n480 rounds: miscalibration 1 <= promised 2, held 100.0% (")
    assert ours > theirs
    with pytest.raises(AssertionError):
        kept("480 rounds: miscalibration 0.01 <= promised 0.06, held 99.0% (quantile 1)")
