"""Matrix, need and comparison as a sales engineer uses them, with nothing but the browser."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


def figure(cell: Locator) -> int:
    """Return the number in a cell."""
    return int(re.sub(r"\D", "", cell.inner_text()))


def column(page: Page, name: str) -> int:
    """Return the place of a column of the matrix."""
    heads = page.locator(".matrix thead tr").nth(1).locator("th").all_inner_texts()
    return [" ".join(head.split()) for head in heads].index(name) - 1


def line(page: Page, name: str) -> Locator:
    """Return the cells of a line of the matrix, memory first."""
    row = page.locator(".matrix tbody tr").filter(
        has=page.get_by_role("rowheader", name=name, exact=True)
    )
    return row.locator("td")


def test_24_and_78_are_found_and_explained(page: Page) -> None:
    """From the matrix to the pair's own result, and side by side with the two copies."""
    page.goto("/en/matrix")
    cells = line(page, "RTX PRO 6000 Blackwell Server Edition")
    assert figure(cells.nth(column(page, "2 copies"))) == 24
    pair = cells.nth(column(page, "TP 2"))
    assert figure(pair) == 78
    pair.get_by_role("link").click()
    expect(page.locator("#verdict-sentence")).to_contain_text("78 requests of 8,192 tokens")
    page.goto("/en/compare")
    expect(page.locator("tr", has_text="weights on a card")).to_contain_text("33.9")


def test_a_rag_assistant_for_200_seats(page: Page) -> None:
    """Model, kind of requests and users are enough; the first server leads to its result."""
    page.goto("/en/need")
    page.get_by_label("Model", exact=True).fill("Llama 3.3 70B Instruct")
    page.get_by_label("Kind of requests").select_option("rag")
    page.get_by_label("or users").fill("200")
    page.get_by_role("button", name="Find servers").click()
    first = page.locator(".need-result tbody tr").first
    assert figure(first.locator("td").nth(0)) >= 13
    first.get_by_role("link").first.click()
    expect(page.locator("#verdict-sentence")).to_contain_text("fit at the same time")


def test_thirty_developers_with_a_spare_copy(page: Page) -> None:
    """A coding agent on gpt-oss-120b: N+1 adds a copy; another row shows its own curve."""
    page.goto("/en/need?model=gpt-oss-120b&preset=coding&users=30&requests_per_hour=40")
    without = page.locator(".need-result tbody tr").first.locator("td").nth(4)
    cards = figure(without)
    page.get_by_label("one copy may fail (N+1)").check()
    page.get_by_role("button", name="Find servers").click()
    spare = page.locator(".need-result tbody tr").first.locator("td").nth(4)
    assert figure(spare) > cards
    page.get_by_role("link", name="Curve").first.click()
    expect(page.locator(".need-result tr[aria-current]")).to_have_count(1)
    expect(page.locator(".curve")).to_be_visible()


def test_deepseek_on_eight_h200(page: Page) -> None:
    """TP 8 holds the least, DP 8 with EP more, DCP 8 the most; the page says why."""
    page.goto("/en/matrix?model=deepseek-v3.2&kv_cache_dtype=fp8&max_model_len=32768&cards=8")
    cells = line(page, "H200")
    figures = [
        figure(cells.nth(column(page, name))) for name in ("TP 8", "DP 8 · EP", "TP 8 · DCP 8")
    ]
    assert figures == sorted(figures)
    assert figures[0] < figures[2] / 7
    expect(page.get_by_text("copies the cache to each of 8 cards").first).to_be_visible()


def test_the_first_column_stays_while_the_table_scrolls(page: Page) -> None:
    """On a phone the card's name stays in view beside the last layout."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/en/matrix")
    name = page.locator(".matrix tbody th").first
    before = name.bounding_box()
    page.locator(".matrix-scroller").evaluate("box => { box.scrollLeft = 5000 }")
    after = name.bounding_box()
    assert before is not None
    assert after is not None
    assert before["x"] == after["x"]


def test_a_filter_is_an_address(page: Page) -> None:
    """What the form asks for stands in the address, and Back undoes it."""
    page.goto("/en/matrix")
    lines = page.locator(".matrix tbody tr").count()
    page.get_by_label("only what fits").check()
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("fitting=true"))
    assert page.locator(".matrix tbody tr").count() < lines
    page.go_back()
    assert page.locator(".matrix tbody tr").count() == lines
