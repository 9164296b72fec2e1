"""The vendor's worked figures, as somebody sees them in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browser.pages import LLAMA, Workbench

FIGURES = [
    ({}, "12"),
    ({"kv_cache_dtype": "bfloat16"}, "6"),
    ({"kv_cache_dtype": "nvfp4"}, "21"),
    ({"replicas": "2"}, "24"),
    ({"tensor_parallel_size": "2"}, "78"),
    ({"gpu": "h200-nvl"}, "44"),
]


@pytest.mark.parametrize(("change", "requests"), FIGURES, ids=[figure for _, figure in FIGURES])
def test_worked_figures(page: Page, change: dict[str, str], requests: str) -> None:
    """Llama 3.3 70B in FP8 at 8,192 tokens gives 12, 6, 21, 24, 78 and 44 requests."""
    bench = Workbench(page).open({**LLAMA, **change})
    assert bench.result.sentence.startswith(f"{requests} requests of 8,192 tokens fit")
    assert bench.result.planned == requests


def test_utilization_of_vllm(page: Page) -> None:
    """With a share of 0.92 the planning figure is 13.8, so 13 requests."""
    bench = Workbench(page).open({**LLAMA, "gpu_memory_utilization": "0.92"})
    assert bench.result.planned == "13"


def test_layouts_compare_copies_with_a_group(page: Page) -> None:
    """A server of two cards shows one card, two copies and the group side by side: 12, 24, 78."""
    bench = Workbench(page).open({**LLAMA, "server": "2x-rtx-pro-6000-server"})
    for name, requests in (("One card", "12"), ("2 copies, one card each", "24"), ("TP 2", "78")):
        assert bench.result.layout(name).locator("td").nth(1).inner_text() == requests
    chosen = page.locator("#layouts tr[aria-current=true]")
    assert chosen.get_by_role("rowheader").inner_text() == "One card"


def test_too_long_a_context_says_so_and_offers_one_that_fits(page: Page) -> None:
    """At 131,072 tokens 0.77 of a request fits, and the first way out leads to one that fits."""
    bench = Workbench(page).open({**LLAMA, "max_model_len": "131072"})
    assert "0.77" in bench.result.sentence
    assert "does not fit" in page.locator(".state").inner_text().lower()
    page.locator(".ways a").first.click()
    page.wait_for_url(re.compile("max_model_len=98304"))
    assert bench.result.sentence.startswith("1 request of 98,304 tokens fits")


def test_log_line_of_the_format_example(page: Page) -> None:
    """643,232 tokens at 40,960 tokens per request print 15.70x."""
    bench = Workbench(page).open(
        {
            **LLAMA,
            "max_model_len": "40960",
            "available_kv_cache_memory_bytes": str(643_232 * 160 * 1024),
        }
    )
    assert "GPU KV cache size: 643,232 tokens" in bench.result.log
    assert "Maximum concurrency for 40,960 tokens per request: 15.70x" in bench.result.log


def test_german_numbers(page: Page) -> None:
    """The same figures in German, with German grouping."""
    bench = Workbench(page, "de").open({**LLAMA, "max_model_len": "131072"})
    assert "131.072" in bench.result.sentence
    assert "0,77" in bench.result.sentence
