"""The page that lays two releases beside each other."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from app.core.releases import Release
from app.core.units import GIB
from app.main import ROOT
from app.wizard.release_changes import NO_RULES, PART_OF
from tests.strict_client import StrictClient, parse_strictly

CASE = {
    "model": "gpt-oss-120b",
    "gpu": "h100-80gb-hbm3",
    "max_model_len": "131072",
    "max_num_batched_tokens": "1024",
    "available_kv_cache_memory_bytes": str(int(10.52 * GIB)),
    "vllm_version": "0.20.0",
    "other_version": "0.33.0",
}
PATHS = {"de": "/de/versionen", "en": "/en/releases"}
HX = {"HX-Request": "true", "HX-Request-Type": "partial"}


def text_of(html: str) -> str:
    """Return the text of a page on one line."""
    return " ".join("".join(parse_strictly(html).itertext()).split())


@pytest.mark.parametrize("language", ["de", "en"])
def test_both_lines_stand_in_their_own_format(client: StrictClient, language: str) -> None:
    """One release prints two lines, the other one; both stand as they are printed."""
    text = text_of(client.get(PATHS[language], params=CASE).text)
    assert "GPU KV cache size: 153,200 tokens Maximum concurrency for 131,072" in text
    assert "GPU KV cache size: 301,375 tokens, Maximum concurrency for 131,072" in text


def test_rules_are_said_with_effect_release_and_source(client: StrictClient) -> None:
    """A rule that moved stands with its effect in tokens, since when, and where that is from."""
    text = text_of(client.get(PATHS["en"], params=CASE).text)
    assert "How the printed tokens are counted+150,509 tokens" in text
    assert re.search(r"tokens in a block → concurrency . context", text)
    assert re.search(r"since 0\.20\.1 · vllm/v1/core/kv_cache_utils\.py", text)
    assert re.search(r"\d+ rules differ and change nothing here", text)


def test_no_figures_are_the_same_where_none_are_printed(client: StrictClient) -> None:
    """Where both releases refuse a case, the page does not say that their figures are equal."""
    refused = {**CASE, "tensor_parallel_size": "3"}
    text = text_of(client.get(PATHS["en"], params=refused).text)
    assert "print the same figures" not in text
    assert "vLLM stops before it prints the two figures" in text
    same = {**CASE, "vllm_version": "0.32.0"}
    assert "print the same figures" in text_of(client.get(PATHS["en"], params=same).text)


def test_an_example_stands_where_no_case_is_given(client: StrictClient) -> None:
    """Without a case the page shows one, says so, and compares the default with the newest."""
    text = text_of(client.get(PATHS["en"]).text)
    assert "An example" in text
    assert "0.32.0 and 0.33.0" in text


def test_htmx_gets_the_comparison_alone(client: StrictClient) -> None:
    """Choosing another release swaps the comparison and nothing around it."""
    block = client.get(PATHS["en"], params=CASE, headers=HX).text
    assert block.lstrip().startswith('<div class="result stack" id="comparison">')


@pytest.mark.parametrize("wrong", [{"max_model_len": "1.5K"}, {"model": "nobody/nothing"}])
def test_a_wrong_case_is_named(client: StrictClient, wrong: dict[str, str]) -> None:
    """What is wrong with the case is said, with a way to change it, and nothing is computed."""
    answer = client.get(PATHS["en"], params={**CASE, **wrong})
    assert answer.status_code == 422
    text = text_of(answer.text)
    assert "One entry could not be used" in text
    assert "Change the case" in text


def test_a_release_nobody_knows_falls_back(client: StrictClient) -> None:
    """Text that is no release as the second one means the newest, not a failure."""
    answer = client.get(PATHS["en"], params={**CASE, "other_version": "<b>'\x00"})
    assert answer.status_code == 200
    assert "0.20.0 and 0.33.0" in text_of(answer.text)


def test_every_rule_has_words() -> None:
    """Each fact of a release that can move a figure has a sentence on the page."""
    words = (ROOT / "templates/releases/rule_words.html").read_text(encoding="utf-8")
    rules = {each.name for each in fields(Release)} - NO_RULES - PART_OF.keys()
    assert {rule for rule in rules if f'rule == "{rule}"' not in words} == set()
