"""Every page for everybody: axe in both languages and colour schemes, narrow screens, big text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Watch
from tests.browser.pages import LLAMA, address

TOO_LONG = {**LLAMA, "max_model_len": "131072"}
LOADED = {
    **LLAMA,
    "server": "4x-rtx-pro-6000-server",
    "peak_requests": "30",
    "mean_request_tokens": "2000",
}
HYBRID = {"model": "gpt-oss-120b", "gpu": "h200-nvl", "max_model_len": "32768"}
WRONG = {**LLAMA, "max_model_len": "1.5K"}

PAGES = {
    "de": [
        "/de/",
        "/de/hilfe",
        "/de/so-rechnet-es",
        "/de/datenschutz",
        "/de/auslegung/modell",
        address("/de/auslegung/praezision", LLAMA),
        address("/de/auslegung/karten", LLAMA),
        address("/de/auslegung/aufteilung", LOADED),
        address("/de/auslegung/kontext", LLAMA),
        address("/de/auslegung/ergebnis", LOADED),
        address("/de/auslegung/pruefen", LLAMA),
        address("/de/angebot", LLAMA),
        address("/de/rechner", TOO_LONG),
        address("/embed/de/rechner", {**HYBRID, "theme": "auto"}),
        "/de/matrix",
        "/de/bedarf",
        "/de/vergleich",
    ],
    "en": [
        "/en/",
        "/en/sizing/model",
        address("/en/sizing/result", TOO_LONG),
        address("/en/sizing/layout", LOADED),
        address("/en/workbench", LOADED),
        address("/en/workbench", WRONG),
        address("/en/workbench", HYBRID),
        address("/embed/en/sizing/precision", LLAMA),
        "/en/matrix/server?cards=8",
        "/en/need?model=gpt-oss-120b&preset=coding&users=30",
        "/en/compare?case=model%3Dllama-3.1-8b",
    ],
}
ALL = [path for paths in PAGES.values() for path in paths]


@pytest.fixture(params=["light", "dark"])
def scheme_page(
    request: pytest.FixtureRequest, browser: Browser, base_url: str, watch: Watch
) -> Iterator[Page]:
    """Return a page in a colour scheme, watched like every other."""
    scheme: Literal["light", "dark"] = request.param
    context = browser.new_context(base_url=base_url, color_scheme=scheme)
    watch.attach(context)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("language", ["de", "en"])
def test_axe_finds_nothing(
    scheme_page: Page, watch: Watch, axe: Callable[[Page], Any], language: str
) -> None:
    """Axe finds no mistake on any page, with everything unfolded, in light and dark."""
    watch.expect(r"status of 422")
    found = {}
    for path in PAGES[language]:
        scheme_page.goto(path)
        scheme_page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        if violations := axe(scheme_page):
            found[path] = violations
    assert found == {}


def test_no_page_scrolls_sideways(page: Page, watch: Watch) -> None:
    """At 320 px, which is also a desktop at 400 %, only tables scroll, in frames of their own."""
    watch.expect(r"status of 422")
    page.set_viewport_size({"width": 320, "height": 640})
    wide = {}
    for path in ALL:
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 320:
            wide[path] = width
    assert wide == {}


def test_targets_are_large_enough(page: Page) -> None:
    """Buttons, fields and choices are at least 24 px in both directions (WCAG 2.5.8)."""
    small = []
    for path in ALL:
        if "1.5K" in path:
            continue
        page.goto(path)
        small += page.evaluate(
            "() => [...document.querySelectorAll("
            "'button, select, input:not([type=hidden]), summary, nav a, .languages a')]"
            ".filter(e => e.checkVisibility())"
            ".map(e => [e.closest('label') ?? e, e])"
            ".map(([box, e]) => [e.outerHTML.slice(0, 80), box.getBoundingClientRect()])"
            ".filter(([, r]) => r.width < 24 || r.height < 24).map(([html]) => html)"
        )
    assert small == []


def test_headings_are_in_order(page: Page, watch: Watch) -> None:
    """No heading skips a level, and each page has one h1."""
    watch.expect(r"status of 422")
    for path in ALL:
        page.goto(path)
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
        )
        assert levels.count(1) == 1, path
        assert all(b - a <= 1 for a, b in pairwise(levels)), (path, levels)


def test_forced_colours_keep_the_bar(browser: Browser, base_url: str) -> None:
    """With forced colours the memory bar and its key keep their hues."""
    context = browser.new_context(base_url=base_url, forced_colors="active")
    try:
        page = context.new_page()
        page.goto(address("/en/workbench", LLAMA))
        fills = page.evaluate(
            "new Set([...document.querySelectorAll('#memory .bar rect')]"
            ".map(r => getComputedStyle(r).fill)).size"
        )
        assert fills >= 5
    finally:
        context.close()
