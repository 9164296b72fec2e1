"""Pasting a log and a metrics page in a browser: for everybody, with and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watch
from tests.readings import hard_logs
from tests.readings.metrics import page as metrics_page
from tests.web.log_pages import KNOWN

LOG = {"en": "/en/log", "de": "/de/log"}
METRICS = {"en": "/en/metrics", "de": "/de/metriken"}


def read_log(page: Page, language: str, text: str) -> None:
    """Paste a log and send it."""
    page.goto(LOG[language])
    page.locator("#log").fill(text)
    page.locator("form button[type=submit]").click()
    expect(page.locator("#lines")).to_be_visible()


def read_metrics(page: Page, language: str) -> None:
    """Paste two metrics pages and send them."""
    page.goto(METRICS[language])
    page.locator("#metrics").fill(metrics_page(usage=0.97, waiting=9))
    page.locator("#metrics_later").fill(metrics_page(usage=0.97, waiting=9, preemptions=40))
    page.locator("form button[type=submit]").click()
    expect(page.locator("#change")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_axe_finds_nothing(
    browser: Browser, base_url: str, watch: Watch, axe: Callable[[Page], Any],
    language: str, scheme: Literal["light", "dark"],
) -> None:  # fmt: skip
    """Axe finds no mistake on the filled pages, everything unfolded, in light and dark."""
    context = browser.new_context(base_url=base_url, color_scheme=scheme)
    watch.attach(context)
    page = context.new_page()
    found = {}
    for name, text in (("known", KNOWN), ("hard", hard_logs.OVERRIDDEN)):
        read_log(page, language, text)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        found[name] = axe(page)
    read_metrics(page, language)
    found["metrics"] = axe(page)
    context.close()
    assert {name: violations for name, violations in found.items() if violations} == {}


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_narrow_phone_scrolls_nothing_sideways(page: Page, language: str) -> None:
    """At 320 px nothing but tables in their own scrollers is wider than the page."""
    page.set_viewport_size({"width": 320, "height": 640})
    read_log(page, language, KNOWN + hard_logs.CONSUMED)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    read_metrics(page, language)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_from_a_log_to_the_next_server_without_scripts(
    browser: Browser, base_url: str, watch: Watch
) -> None:
    """Without JavaScript a log is read, and the workbench opens with what was measured."""
    context = browser.new_context(base_url=base_url, java_script_enabled=False)
    watch.attach(context)
    page = context.new_page()
    read_log(page, "en", KNOWN)
    page.get_by_role("link", name="Size the next server from this log").click()
    expect(page.locator("#verdict-sentence")).to_be_visible()
    assert "measured_on" in page.url
    context.close()


def test_a_file_is_chosen(page: Page) -> None:
    """A chosen file is read like pasted text."""
    page.goto(LOG["de"])
    page.locator("#log_file").set_input_files(
        {"name": "server.log", "mimeType": "text/plain", "buffer": KNOWN.encode()}
    )
    page.locator("form button[type=submit]").click()
    expect(page.locator("#summary")).to_contain_text("Llama 3.1 8B")


def test_an_empty_form_moves_the_focus(page: Page, watch: Watch) -> None:
    """After sending nothing the focus is on the summary, whose link leads to the field."""
    watch.expect(r"status of 422")
    page.goto(LOG["en"])
    page.locator("form button[type=submit]").click()
    expect(page.locator("#errors")).to_be_focused()
    page.locator("#errors a").click()
    expect(page.locator("#log")).to_be_focused()
