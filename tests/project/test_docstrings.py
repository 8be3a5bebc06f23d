"""Public docstrings: summary, parameters, formula, source, and an example that runs."""

import doctest
import inspect
import re
import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import orcast

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "decisions",
    "evaluate",
    "evaluate.metrics",
    "evaluate.plots",
    "evaluate.report",
    "forecasts",
    "paper",
    "payoffs",
    "scores",
    "testing",
)
INTEGRATIONS = ROOT / "src" / "orcast" / "integrations"
# For those who extend the package: docs/architecture.md has recipes that run.
BUILDING_BLOCKS = {
    *(f"decisions.{name}" for name in ("check_quantity", "expected_value")),
    *(f"forecasts.{name}" for name in ("FiniteForecast", "PERCENTS", "as_levels", "as_masses", "forecast_on")),
    *(f"payoffs.{name}" for name in ("CellGrid", "CellPayoff", "Part", "Payoff", "Sum", "default_payoff")),
    *(f"payoffs.{name}" for name in ("part_names", "payoff_from_plain")),
    *(f"scores.{name}" for name in ("Score", "score_from_plain")),
    # results of functions whose examples show them
    *(f"evaluate.{name}" for name in ("Change", "Difference")),
    *(f"evaluate.{name}" for name in ("ReferenceScore", "Table")),
}
# Parameters that mean the same in all functions of a module, where they are described once.
SHARED = {"orcast.evaluate": {"evaluation", "side"}}
# What the wrappers share, which no user calls.
INTERNAL = {"common", "optional"}

# What lives in these modules has a formula and a source, unless it is listed below.
MATHEMATICAL = (
    *(f"orcast.{name}" for name in ("decisions", "engine", "evaluate.metrics", "game", "ledger")),
    *(f"orcast.{name}" for name in ("paper", "payoffs", "recalibrator", "scores", "spaces")),
)
NO_DOCSTRING = {"evaluate.metrics.LEVELS": "an array, which can have none; a comment beside it says what it is"}
NO_EXAMPLE = {
    "integrations.spark.": "a session is a Java process, too slow for an example: its tests start one for all"
}

# Methods that engines call, not users.
INTERNAL_METHODS = {"begin", "bind", "follows", "issued", "on_cells", "read", "trusted"}
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"^ {4,}(?!>>>|\.\.\. |- )\S.*(<=|>=|<-|!=|[=~<>*/^+]| - )", re.MULTILINE)
SOURCE = re.compile(r"\bpaper\b|\bpaper's\b|docs/\w+\.md|\b(?:1[89]|20)\d\d\b")


def public() -> dict[str, Any]:
    """Every public name, as users write it after `orcast.`, but for integrations."""
    names = {name: getattr(orcast, name) for name in orcast.__all__}
    names = {name: thing for name, thing in names.items() if not isinstance(thing, ModuleType)}
    for place in MODULES:
        module = import_module(f"orcast.{place}")
        own = [name for name in _names_of(module) if name not in orcast.__all__]
        names |= {f"{place}.{name}": getattr(module, name) for name in own}
    return {name: thing for name, thing in names.items() if name not in BUILDING_BLOCKS}


def integrations() -> dict[str, Any]:
    """Public names of the integrations that can be imported here."""
    found: dict[str, Any] = {}
    for name in sorted(
        {path.stem for path in INTEGRATIONS.iterdir() if not path.name.startswith("_") and path.stem not in INTERNAL}
    ):
        try:
            module = import_module(f"orcast.integrations.{name}")
        except ImportError:
            continue  # the library that it is for is not installed
        things = {each: getattr(module, each) for each in _names_of(module)}
        found |= {f"integrations.{name}.{each}": thing for each, thing in things.items() if callable(thing)}
    return found


def _names_of(module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    own = [n for n, v in vars(module).items() if not n.startswith("_") and _home(v) == module.__name__]
    return sorted(own if listed is None else listed)


def _home(thing: Any) -> str:
    return str(getattr(thing, "__module__", ""))


def is_mathematical(thing: Any) -> bool:
    return any(_home(thing) == module or _home(thing).startswith(f"{module}.") for module in MATHEMATICAL)


def faults(text: str | None, *, examples: int, formula: bool, source: bool) -> list[str]:
    """What a docstring lacks; `examples` is how many lines of its examples are run."""
    if not text or not text.strip():
        return ["a docstring"]
    first, _, rest = text.strip().partition("\n")
    found = []
    if not re.search(r"[.?]$", first.strip()) or (rest and rest.split("\n", 1)[0].strip()):
        found.append("a first sentence that ends on its own line")
    if not examples:
        found.append("an example that runs")
    # example lines are not formulas, nor is what they print
    prose = re.sub(r"^ *>>>.*?(?=\n\s*\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    if formula and not FORMULA.search(prose):
        found.append("a formula on an indented line")
    if source and not SOURCE.search(prose):
        found.append("a source")
    return found


def examples_of(thing: Any) -> int:
    """How many lines the doctests of a thing's own docstring run."""
    text, module = inspect.getdoc(thing), sys.modules[_home(thing)]
    # collected where the test run collects them: in the module that defines the thing
    if getattr(module, getattr(thing, "__name__", ""), None) is not thing:
        return 0
    return len(doctest.DocTestParser().get_examples(text or ""))


PUBLIC = public()


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - NO_DOCSTRING.keys()))
def test_public_name_is_documented(name: str) -> None:
    thing = PUBLIC[name]
    own = thing.__dict__.get("__doc__") if isinstance(thing, type) else thing.__doc__  # none that is inherited
    text = inspect.cleandoc(own) if own else None
    mathematical = is_mathematical(thing)
    lacking = faults(text, examples=examples_of(thing), formula=mathematical, source=mathematical)
    assert not lacking, f"orcast.{name} lacks {', '.join(lacking)}"


def described(text: str) -> set[str]:
    """Names in the sections Parameters and Attributes of docstrings."""
    lines = [line for body in SECTION.findall(text) for line in body.splitlines() if re.match(r"\S", line)]
    return {name.strip().lstrip("*") for line in lines for name in line.partition(":")[0].split(",")}


def undescribed(thing: Any, text: str | None = None) -> set[str]:
    """Public parameters that the docstring does not describe."""
    try:
        names = {name for name in inspect.signature(thing).parameters if not name.startswith("_")} - {"self"}
    except (TypeError, ValueError):
        return set()
    shared = next((own for place, own in SHARED.items() if _home(thing).startswith(place)), set())
    return names - shared - described(inspect.getdoc(thing) or "" if text is None else text)


def with_methods(name: str, thing: Any) -> dict[str, set[str]]:
    """Undescribed parameters of a public name and of its methods; the summary of a method may name a single one."""
    found = {name: undescribed(thing)} if callable(thing) else {}
    for key in dir(thing) if isinstance(thing, type) else ():
        method = getattr(thing, key)
        own = inspect.isroutine(method) and _home(method).startswith("orcast.")
        if own and not key.startswith("_") and key not in INTERNAL_METHODS:
            bases = [vars(base)[key] for base in thing.__mro__ if key in vars(base)]
            lacking = undescribed(method, "\n\n".join(inspect.getdoc(each) or "" for each in bases))
            found[f"{name}.{key}"] = lacking if len(lacking) > 1 else set()
    return {name: lacking for name, lacking in found.items() if lacking}


def test_parameters_are_described() -> None:
    found: dict[str, set[str]] = {}
    for name, thing in (PUBLIC | integrations()).items():
        found |= with_methods(name, thing)
    assert found == {}


def test_integrations_are_documented() -> None:
    lacking = {}
    for name, thing in integrations().items():
        excused = name.startswith(tuple(NO_EXAMPLE))
        found = faults(inspect.getdoc(thing), examples=excused or examples_of(thing), formula=False, source=False)
        if found:
            lacking[name] = found
    assert not lacking


def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    shown = re.findall(r"^::: orcast\.(\S+)$", pages, re.MULTILINE)
    assert len(shown) == len(set(shown))
    # metrics and Evaluation stand in their modules, under the same name
    twins = {name.rpartition(".")[2] for name in shown if name.partition(".")[0] in MODULES}
    missing = {name for name in PUBLIC if name not in shown and not ("." not in name and name in twins)}
    assert missing == NO_DOCSTRING.keys()


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """What the documentation site does to docstrings and pages."""
    pytest.importorskip("griffe")
    spec = util.spec_from_file_location("orcast_docs_hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_site_shows_numpydoc(hooks: ModuleType) -> None:
    text = (
        "One `Normal` < two.\n\n    a < b * c\n\nParameters\n----------\nx : dict[str, `y`]\n    A <b> of `Line`.\n\n"
        "        x < 1\n\nExamples\n--------\n>>> f(`Line`) < 1\n2\n"
    )
    told = text.replace("`Normal` <", "[`Normal`][orcast.Normal] <").replace(
        "A <b> of `Line`", "A &lt;b> of [`Line`][orcast.Line]"
    )
    assert hooks.markdown(text).strip() == told.strip()


def test_site_fences_examples_outside_a_section(hooks: ModuleType) -> None:
    text = "One.\n\n>>> f(1)\n2\n\nMore.\n\n>>> g(`x`)\nTrue"
    assert hooks.markdown(text) == (
        "One.\n\n\n```pycon\n>>> f(1)\n2\n```\n\nMore.\n\n\n```pycon\n>>> g(`x`)\nTrue\n```"
    )


def test_site_shows_the_help_of_every_command(hooks: ModuleType) -> None:
    page = hooks.command_help()
    for command in (
        "",
        " recalibrate",
        " check",
        " stream",
        " log",
    ):
        assert f"## orcast{command}\n\n```text\nusage: " in page
