"""Releases compared, a pasted config.json, the Accuracy page: one journey each, in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watch
from tests.browser.pages import address
from tests.web.test_config import PLAIN, UNKNOWN, too_long

CASE = {
    "model": "gpt-oss-120b",
    "gpu": "h100-80gb-hbm3",
    "max_model_len": "98304",
    "gpu_memory_utilization": "0.95",
    "vllm_version": "0.25.1",
    "other_version": "0.26.0",
}
READ = "main form[method=post] button[type=submit]"


def paste(page: Page, config: Mapping[str, Any], language: str = "en") -> None:
    """Fill the form in as a person does, and send it."""
    page.goto(f"/{language}/config")
    page.locator("#hf_config").fill(json.dumps(config))
    page.locator(READ).first.click()


def test_from_a_result_to_another_release(page: Page) -> None:
    """A result leads to its comparison; choosing a release swaps it, and the address keeps it."""
    case = {name: text for name, text in CASE.items() if name != "other_version"}
    page.goto(address("/en/workbench", case))
    page.get_by_role("link", name="The same case in another release").click()
    expect(page.locator("#both-title")).to_have_text("0.25.1 and 0.33.0")
    page.locator("#other_version").select_option("0.26.0")
    expect(page.locator("#both-title")).to_have_text("0.25.1 and 0.26.0")
    expect(page.locator("#comparison")).to_contain_text("Sliding windows hold the tokens")
    assert "other_version=0.26.0" in page.url
    page.go_back()
    expect(page.locator("#both-title")).to_have_text("0.25.1 and 0.33.0")


def test_releases_without_javascript(browser: Browser, base_url: str) -> None:
    """The comparison is a plain form with a button where there is no JavaScript."""
    context = browser.new_context(base_url=base_url, java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(address("/de/versionen", CASE))
        page.locator("#other_version").select_option("0.20.0")
        page.get_by_role("button", name="Vergleichen").click()
        expect(page.locator("#both-title")).to_have_text("0.25.1 und 0.20.0")
    finally:
        context.close()


def test_from_a_config_to_a_result(page: Page) -> None:
    """The model question leads to the form, the form to what was read, and that to a result."""
    page.goto("/en/sizing/model")
    page.get_by_role("link", name="My model is not in the list").click()
    page.locator("#hf_config").fill(json.dumps(PLAIN))
    page.locator(READ).first.click()
    expect(page.locator("#read")).to_have_text("Read: LlamaForCausalLM")
    page.get_by_role("link", name="Size this model").click()
    expect(page.locator("#errors")).to_have_count(0)
    page.locator("#gpu").select_option("h200-nvl")
    page.locator("input[name=tensor_parallel_size][value='2']").check()
    expect(page.locator("#result")).to_be_visible()
    expect(page.locator("#assumptions")).to_contain_text("pasted configuration")
    assert "spec=" in page.url


def test_an_assumption_is_confirmed_without_javascript(browser: Browser, base_url: str) -> None:
    """An unknown architecture is handled after a tick, with JavaScript switched off too."""
    context = browser.new_context(
        base_url=base_url, java_script_enabled=False, viewport={"width": 390, "height": 844}
    )
    try:
        page = context.new_page()
        paste(page, UNKNOWN, "de")
        page.locator("#assume_plain_decoder").check()
        page.locator(READ).first.click()
        expect(page.locator("#read")).to_have_text("Gelesen: WonderForCausalLM")
    finally:
        context.close()


def test_a_config_without_a_link_is_sized_on_its_page(page: Page) -> None:
    """What is too long for an address is sized by the form."""
    paste(page, too_long())
    page.locator("#gpu").select_option("h200-nvl")
    page.locator("#tensor_parallel_size").fill("2")
    page.locator("#max_model_len").fill("8k")
    page.locator(READ).first.click()
    expect(page.locator("#verdict-sentence")).to_contain_text("requests of 8,000 tokens")


def test_from_the_footer_to_a_start(page: Page) -> None:
    """The footer leads to the Accuracy page, and a start there to its case."""
    page.goto("/de/")
    page.get_by_role("contentinfo").get_by_role("link", name="Genauigkeit").click()
    page.locator("table.starts tbody a").first.click()
    expect(page.locator("#result")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser,
    base_url: str,
    watch: Watch,
    axe: Callable[[Page], Any],
    scheme: Any,  # noqa: ANN401 - Playwright's own literal
) -> None:
    """Axe finds no mistake on the three pages, read or refused, and none of them is too wide."""
    watch.expect(r"status of 422")
    context = browser.new_context(
        base_url=base_url, color_scheme=scheme, viewport={"width": 320, "height": 640}
    )
    watch.attach(context)
    page = context.new_page()
    found: dict[str, Any] = {}

    def check(name: str) -> None:
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        wide = page.evaluate("document.documentElement.scrollWidth") > 320
        if violations := axe(page) or wide:
            found[name] = violations

    for path in ("/de/genauigkeit", "/en/accuracy", "/en/config"):
        page.goto(path)
        check(path)
    for path in ("/de/versionen", "/en/releases"):
        page.goto(address(path, CASE))
        check(path)
    for name, config in (("known", PLAIN), ("unknown", UNKNOWN), ("long", too_long()), ("no", {})):
        paste(page, config, "de")
        check(name)
    context.close()
    assert found == {}
