"""What every module must keep: a pure core, small modules, names that say something."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.main import ROOT

APP = ROOT / "app"
MODULES = sorted(path for path in APP.rglob("*.py") if "migrations" not in path.parts)
CORE = sorted((APP / "core").glob("*.py"))
MAX_MODULE_LINES = 320
MAX_FUNCTION_LINES = 45
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
IMPURE = {
    "asyncio", "datetime", "gettext", "http", "io", "locale", "logging", "os", "pathlib", "random",
    "secrets", "shutil", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time",
    "urllib", "uuid",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input"}
SENTENCE = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,} [^\W\d_]{2,}")


def impurities(source: str) -> list[str]:
    """Return what makes a module impure: imports beyond the standard library, I/O, a clock."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [node.func.id] if node.func.id in IMPURE_CALLS else []
        for name in names:
            root = name.split(".")[0]
            own = name == "app.core" or name.startswith("app.core.")
            if not own and (root not in sys.stdlib_module_names or root in IMPURE):
                found.append(name)
    return found


def sentences(source: str) -> list[str]:
    """Return strings of three words or more that a person could come to read.

    Docstrings, the messages of raised errors (programming mistakes) and citations (a keyword
    `source=`, or a text that starts with a file of vLLM) do not count.
    """
    tree = ast.parse(source)
    exempt = {id(node) for node in _exempt(tree)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in exempt
        and SENTENCE.search(node.value)
        and not node.value.startswith("vllm/")
    ]


def _exempt(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        elif isinstance(node, ast.Raise) or (
            isinstance(node, ast.keyword) and node.arg == "source"
        ):
            yield from ast.walk(node)


def long_functions(source: str) -> list[str]:
    """Return functions with more lines of body, docstring not counted, than the house allows."""
    return [
        f"{node.name}: {_body_lines(node)} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _body_lines(node) > MAX_FUNCTION_LINES
    ]


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def _name(path: Path) -> str:
    return path.relative_to(APP).as_posix()


@pytest.mark.parametrize("module", CORE, ids=_name)
def test_core_is_pure(module: Path) -> None:
    """The core imports the standard library only and does no input, output or clock reading."""
    assert impurities(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", CORE, ids=_name)
def test_core_has_no_words(module: Path) -> None:
    """The core returns codes and numbers; sentences live in templates."""
    assert sentences(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", MODULES, ids=_name)
def test_modules_and_functions_stay_small(module: Path) -> None:
    """A module fits in a head, a function on a screen, and a name says what is inside."""
    source = module.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_MODULE_LINES
    assert long_functions(source) == []
    assert module.stem not in FORBIDDEN_NAMES


def test_impurities_are_found_where_they_are() -> None:
    """The check reports a third-party import, an impure one, another room and a call."""
    bad = "import numpy\nfrom os import path\nfrom app.web import render\nopen('x')\n"
    assert set(impurities(bad)) == {"numpy", "os", "app.web", "open"}
    assert impurities("import math\nfrom app.core.units import GIB\n") == []


def test_sentences_are_found_where_they_are() -> None:
    """The check reports a sentence in a return value, not in a docstring or an error."""
    bad = 'def f():\n    """One two three."""\n    return "it does not fit"\n'
    assert sentences(bad) == ["it does not fit"]
    assert sentences('raise ValueError("tensor parallel size is zero")') == []
    assert sentences('Step("weights", source="what the log prints")') == []


def test_long_functions_are_found_where_they_are() -> None:
    """The check reports a function one line too long and passes one that just fits."""
    body = "    pass\n"
    assert long_functions("def f():\n" + body * (MAX_FUNCTION_LINES + 1))
    assert not long_functions("def f():\n" + body * MAX_FUNCTION_LINES)
