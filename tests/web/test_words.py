"""Every code that the calculation can answer with has words in both languages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from fastapi import FastAPI

from app.catalog.checkpoints import PRECISIONS
from app.core.load import LoadCode
from app.core.reasons import Reason, ReasonCode
from app.core.result import Assumption
from app.main import ROOT
from app.web.locale import LANGUAGES, Language
from app.wizard.answers import Notice, Problem
from app.wizard.inputs import BY_NAME
from app.wizard.model_choice import _REFUSALS as NAMED_AS_REASONS

NUMBERS = (
    "asked", "used", "value", "field", "checkpoint", "precision", "matching", "vllm_version",
    "servers", "cards", "gpu_memory_utilization", "data_parallel_size", "kv_cache_memory_bytes",
    "available_bytes", "low_bytes", "likely_bytes", "high_bytes", "observed_from", "observed_to",
    "cudagraph_bytes", "bytes_per_logit", "suggestion", "decimal", "maximum", "minimum", "key",
    "nearest", "known", "names", "largest", "server_gpu", "gpu", "pair", "before", "bins",
    "needed_gib", "available_gib", "weights_bytes", "free_bytes", "requested_gib", "free_gib",
    "num_attention_heads",
    "tensor_parallel_size", "max_model_len", "derived_max_model_len", "missing_bytes", "like",
    "architecture", "model", "revision", "other_processes_gib", "other_processes_bytes",
    "mig_instances",
)  # fmt: skip


def constants(root: Path, call: str) -> set[str]:
    """Return the first argument of every call of a name, where it is written out."""
    return set(_constants(root, call))


def _constants(root: Path, call: str) -> Iterator[str]:
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == call
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                yield node.args[0].value


def refusals(root: Path) -> set[tuple[str, frozenset[str]]]:
    """Return the code of every refusal of the core with the numbers that it names."""
    found: set[tuple[str, frozenset[str]]] = set()
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                found.update(_refusals_of(function))
    return found


def _refusals_of(function: ast.FunctionDef) -> Iterator[tuple[str, frozenset[str]]]:
    """Read `refuse(release, code, …, name=…, **numbers)`; `numbers` is the last dict so named."""
    spread: dict[str, set[str]] = {}
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.Call)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Assign):
            if isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Dict):
                keys = {each.value for each in node.value.keys if isinstance(each, ast.Constant)}
                spread[node.targets[0].id] = {str(key) for key in keys}
        elif isinstance(node.func, ast.Name) and node.func.id == "refuse":
            code = node.args[1]
            names = {each.arg for each in node.keywords if each.arg is not None}
            for each in node.keywords:
                if each.arg is None and isinstance(each.value, ast.Name):
                    names |= spread.get(each.value.id, set())
            if isinstance(code, ast.Constant):
                yield str(code.value), frozenset(names)


def said(app: FastAPI, language: Language, template: str, macro: str, *args: object) -> str:
    """Return what a macro of a template says."""
    module = app.state.renderer.environments[language].get_template(template).module
    return " ".join(str(getattr(module, macro)(*args)).split())


ASSUMPTIONS = sorted(
    constants(ROOT / "app", "Assumption") - {"not_sure"}
    | {f"release_{notice}" for notice in ("nearest_below", "approximate", "newest", "oldest")}
)
# What only programs can do wrong is worded by the API; some faults of a config are reasons.
API_ONLY = constants(ROOT / "app" / "web", "Problem") - {"several_models", "post_only"}
PROBLEMS = sorted(
    (
        constants(ROOT / "app" / "wizard", "Problem")
        | constants(ROOT / "app" / "web", "Problem")
        | constants(ROOT / "app" / "wizard", "UnreadableError")
        | constants(ROOT / "app" / "catalog", "ConfigError")
    )
    - API_ONLY
    - NAMED_AS_REASONS.keys()
)
STEPS = sorted(constants(ROOT / "app" / "core", "Step"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", ASSUMPTIONS)
def test_assumptions_have_words(app: FastAPI, language: Language, code: str) -> None:
    """No assumption is shown as its code."""
    values = tuple((name, 1) for name in NUMBERS)
    text = said(
        app, language, "result/assumption_words.html", "assumption_words",
        Assumption(code, values), app.state.catalogue,
    )  # fmt: skip
    assert text
    assert code.replace("_", " ") not in text.lower()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("field", sorted(name for name, each in BY_NAME.items() if each.unsure))
def test_every_unsure_answer_has_words(app: FastAPI, language: Language, field: str) -> None:
    """What stands in for "I am not sure" is said in a sentence for each field."""
    assumption = Assumption("not_sure", (("field", field), ("value", 1)))
    text = said(
        app, language, "result/assumption_words.html", "assumption_words",
        assumption, app.state.catalogue,
    )  # fmt: skip
    assert field not in text
    assert text.endswith(".")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", PROBLEMS)
def test_problems_have_words(app: FastAPI, language: Language, code: str) -> None:
    """No problem falls back to the general sentence."""
    values = tuple((name, 1) for name in NUMBERS)
    problem = Problem(code, "hf_config", "x", values)
    text = said(app, language, "components/problem.html", "problem_text", problem)
    general = said(
        app, language, "components/problem.html", "problem_text", Problem("?", "model", "x")
    )
    assert text
    assert text != general


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "code", ["unknown_name", "renamed", "repeated", "other_format", "other_data"]
)
def test_notices_have_words(app: FastAPI, language: Language, code: str) -> None:
    """Every notice on a link says something."""
    notice = Notice(code, "tp", "2", "tensor_parallel_size")
    assert said(app, language, "components/problem.html", "notice_text", notice)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", get_args(ReasonCode))
def test_reasons_have_words(app: FastAPI, language: Language, code: ReasonCode) -> None:
    """Every reason is a sentence of its own; only what has no name is said in general."""
    reason = Reason(code, tuple((name, 1) for name in NUMBERS))
    text = said(app, language, "result/reason_words.html", "reason_words", reason, "0.32.0")
    general = said(
        app, language, "result/reason_words.html", "reason_words",
        Reason("refused_by_vllm"), "0.32.0",
    )  # fmt: skip
    assert text
    assert text != general or code == "refused_by_vllm"


REFUSALS = sorted((code, sorted(names)) for code, names in refusals(ROOT / "app" / "core"))


def test_refusals_are_found() -> None:
    """Plain names, spread dictionaries and refusals without a number are all among them."""
    assert ("heads_not_divisible", ["num_groups", "tensor_parallel_size"]) in REFUSALS
    assert ("kv_cache_too_small", []) in REFUSALS
    assert any(code == "weights_do_not_fit" and "free_bytes" in each for code, each in REFUSALS)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("code", "names"), REFUSALS)
def test_refusals_are_said_with_the_numbers_they_have(
    app: FastAPI, language: Language, code: ReasonCode, names: list[str]
) -> None:
    """No sentence asks for a number that its refusal does not carry."""
    reason = Reason(code, tuple((name, 1) for name in names))
    assert said(app, language, "result/reason_words.html", "reason_words", reason, "0.32.0")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", STEPS)
def test_steps_have_titles(app: FastAPI, language: Language, code: str) -> None:
    """No step is shown as its code."""
    title = said(app, language, "result/step_words.html", "step_title", code)
    assert title != code.replace("_", " ")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_have_names(app: FastAPI, language: Language, precision: str) -> None:
    """Every precision of the catalogue has a name that people know."""
    name = said(app, language, "components/names.html", "precision_name", precision)
    assert name
    assert name != precision or precision == "mixed"


def test_load_checks_are_all_shown() -> None:
    """Each check of a measured load is worded in the section on users."""
    template = (ROOT / "templates" / "result" / "users.html").read_text(encoding="utf-8")
    shown_by_numbers = {"peak_fits", "peak_exceeds_worst_case"}
    for code in get_args(LoadCode):
        assert code in template or code in shown_by_numbers


def test_codes_are_found_where_they_are(tmp_path: Path) -> None:
    """The search finds a code that is written out, so that a new one cannot be overlooked."""
    (tmp_path / "a.py").write_text('x = Assumption("new_code", ())\n', encoding="utf-8")
    assert constants(tmp_path, "Assumption") == {"new_code"}
    assert len(ASSUMPTIONS) > 10
    assert len(PROBLEMS) > 15
    assert len(STEPS) > 10
