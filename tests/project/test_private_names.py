"""Nobody reaches into another module: private names are touched only where they belong.

A private name is one that starts with a single underscore.  A module may use those of `self` and `cls`, of classes
that it defines itself, and of the libraries whose contract they are.  The syntax trees are read, nothing is run.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "src" / "orcast"

# Modules that run and keep the rounds of a recalibrator.
FREE = {"game.py", "rounds.py"}
# Private names that are part of a library's contract.
CONTRACTS = {
    "_asdict": "namedtuple",
    "_at_fork_reinit": "threading",
    "_getframe": "sys",
    "_is_owned": "threading",
    "_replace": "namedtuple",
    "_safe_indexing": "scikit-learn",
    "_set_cutoff": "sktime",
}
TO_DO: set[str] = set()

FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in CONTRACTS


def touched(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The private names of others that a module uses, with their lines."""
    own = names_of_its_own(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{each.name}") for each in node.names if private(each.name))
        elif isinstance(node, ast.Attribute) and private(node.attr):
            holder = node.value.id if isinstance(node.value, ast.Name) else None
            # on a plain name it may be another instance of a class of the module, on an attribute it is not
            if holder not in ("self", "cls") and not (node.attr in own and not isinstance(node.value, ast.Attribute)):
                yield node.lineno, ast.unparse(node)


def names_of_its_own(tree: ast.Module) -> set[str]:
    """Private attributes and methods that the classes of a module define: it may use them on another instance."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                    found.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    found.add(part.target.id)
                elif isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self":
                    found.add(part.attr)
    return found


def test_each_module_keeps_to_its_own_private_names() -> None:
    found: dict[str, list[str]] = {}
    for name in FILES:
        if name not in FREE | TO_DO:
            lines = [f"line {line}: {what}" for line, what in touched(ast.parse((ROOT / name).read_text()))]
            if lines:
                found[name] = lines
    assert not found, "\n".join(f"{name}: {'; '.join(lines)}" for name, lines in found.items())


def test_what_is_done_is_not_still_to_do() -> None:
    done = [name for name in TO_DO if name not in FILES or not [*touched(ast.parse((ROOT / name).read_text()))]]
    assert not done, f"to be taken off the list: {', '.join(sorted(done))}"
