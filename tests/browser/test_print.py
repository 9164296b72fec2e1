"""The sheet that a sales engineer sends: A4, whole, without forms."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.pages import LLAMA, Workbench

A4_WIDTH_PX = 794


def test_printed_sheet_is_whole(page: Page) -> None:
    """On paper: verdict, tables, steps, assumptions, link as text; no form, no button."""
    Workbench(page).open({**LLAMA, "server": "2x-rtx-pro-6000-server"})
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4_WIDTH_PX, "height": 1123})
    for seen in ("#verdict", "#memory table", "#layouts table", ".derivation", "#assumptions ul"):
        assert page.locator(seen).is_visible(), seen
    for unseen in ("form", "button", ".page-nav", ".index", "#quote"):
        assert not any(each.is_visible() for each in page.locator(unseen).all()), unseen
    link = page.locator("#link .print-only")
    assert link.is_visible()
    assert "model=llama-3.3-70b" in link.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_WIDTH_PX


def test_pdf_has_few_pages(page: Page) -> None:
    """The sheet is a PDF of at most eight A4 pages."""
    Workbench(page).open(LLAMA)
    pdf = page.pdf(prefer_css_page_size=True)
    assert 1 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 8
