"""Whatever is in the address, a person gets an answer in the language of the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.pages import LLAMA, Result, address

UNPROCESSABLE = r"status of 422"
WRONG = [
    ({"model": "llama-9-70b"}, "llama-9-70b"),
    ({"max_model_len": "0"}, "0"),
    ({"max_model_len": "1000000000000"}, "1000000000000"),
    ({"max_model_len": "1.5K"}, "1.5K"),
    ({"gpu": "rtx-9090"}, "rtx-9090"),
    ({"kv_cache_dtype": "fp3"}, "fp3"),
]


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize(("change", "named"), WRONG, ids=[named for _, named in WRONG])
def test_wrong_values_are_named(
    page: Page, watch: Watch, language: str, change: dict[str, str], named: str
) -> None:
    """A wrong value gives 422, is named with what to do, and everything entered is kept."""
    watch.expect(UNPROCESSABLE)
    path = {"de": "/de/rechner", "en": "/en/workbench"}[language]
    answer = page.goto(address(path, {**LLAMA, "peak_requests": "7", **change}))
    assert answer is not None
    assert answer.status == 422
    expect(page.locator("#errors a").first).to_contain_text(named)
    expect(page.locator("#peak_requests")).to_have_value("7")


def test_tensor_parallel_three_is_an_answer(page: Page) -> None:
    """TP 3 is no mistake of typing: the result says why vLLM refuses, and what fits."""
    answer = page.goto(address("/de/rechner", {**LLAMA, "tensor_parallel_size": "3"}))
    assert answer is not None
    assert answer.status == 200
    assert "Passt nicht" in page.locator(".state").inner_text()
    expect(page.locator("#verdict .notice")).to_contain_text("64 Attention-Heads")
    assert page.locator(".ways a").count() >= 1
    expect(page.locator("input[name=tensor_parallel_size]:checked")).to_have_value("3")


def test_decimal_comma(page: Page) -> None:
    """0,92 in German is 0.92."""
    page.goto(address("/de/rechner", {**LLAMA, "gpu_memory_utilization": "0,92"}))
    assert Result(page).planned == "13"


def test_old_and_strange_links(page: Page) -> None:
    """An old link is read as far as it goes; what was left out or renamed is said."""
    page.goto(
        address(
            "/en/workbench",
            {**LLAMA, "tp": "2", "colour": "red", "data": "2020-01-01", "v": "0"},
        )
    )
    text = page.locator(".notice").first.inner_text()
    for said in ("tp", "tensor_parallel_size", "colour", "2020-01-01", "another version"):
        assert said in text
    assert Result(page).sentence.startswith("78 requests")


def test_long_query(page: Page, watch: Watch) -> None:
    """A query of almost 8 kB is answered like any other; a longer one gets a plain 414."""
    watch.expect(UNPROCESSABLE)
    answer = page.goto(address("/en/workbench", {**LLAMA, "model": "x" * 7_800}))
    assert answer is not None
    assert answer.status == 422
    watch.expect(r"status of 414")
    answer = page.goto(address("/en/workbench", {**LLAMA, "model": "x" * 9_000}))
    assert answer is not None
    assert answer.status == 414
