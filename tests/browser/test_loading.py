"""What a first visit costs, and that a recalculation moves nothing but the figures."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser.pages import LLAMA, Workbench, address

BUDGET_BYTES = 80_000
MAX_REQUESTS = 4


@pytest.mark.parametrize("path", ["/de/", address("/de/rechner", LLAMA), "/de/auslegung/modell"])
def test_first_load_is_small(page: Page, path: str) -> None:
    """A first visit transfers less than 80 kB compressed, in at most four requests."""
    answers: list[Response] = []

    def note(answer: Response) -> None:
        answers.append(answer)

    page.on("response", note)
    page.goto(path, wait_until="networkidle")
    own = [answer for answer in answers if not answer.url.split("?")[0].endswith("favicon.svg")]
    sizes = {answer.url: answer.request.sizes()["responseBodySize"] for answer in own}
    assert len(own) <= MAX_REQUESTS, list(sizes)
    assert sum(sizes.values()) < BUDGET_BYTES, sizes


def test_recalculation_shifts_nothing(page: Page) -> None:
    """The layout does not jump when a choice recalculates the result."""
    bench = Workbench(page).open(LLAMA)
    page.evaluate(
        "() => { window.shift = 0; new PerformanceObserver(list => list.getEntries()"
        ".forEach(e => { window.shift += e.value })).observe({type: 'layout-shift'}) }"
    )
    bench.choose("kv_cache_dtype", "bfloat16")
    bench.choose("kv_cache_dtype", "auto")
    expect(page.locator("#verdict-sentence")).to_contain_text("12 requests")
    assert page.evaluate("window.shift") < 0.01


def test_nothing_is_stored(page: Page) -> None:
    """No cookie and no web storage, after a visit with recalculations."""
    bench = Workbench(page).open(LLAMA)
    bench.choose("kv_cache_dtype", "bfloat16")
    assert page.context.cookies() == []
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
