"""The guided flow: a customer alone, with a keyboard, without JavaScript, on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watch
from tests.browser.pages import LLAMA, RESULT, Guided, Workbench, address

FITS = {"de": "12 Anfragen mit je 8.192 Token", "en": "12 requests of 8,192 tokens"}
SEARCH = {"de": "Suchen", "en": "Search"}
COPIES_OF_ONE = "1x1"


def walk(page: Page, language: str) -> Guided:
    """Answer every question with the mouse, from the start page to the result."""
    guided = Guided(page, language).open()
    page.locator("#search").fill("llama 3.3 70b")
    page.get_by_role("button", name=SEARCH[language]).click()
    page.get_by_role("link", name="Llama 3.3 70B Instruct").click()
    guided.expect_step(1)
    page.locator(f"input[value='{LLAMA['checkpoint']}']").check()
    guided.go_on()
    guided.expect_step(2)
    page.locator("input[value='server:2x-rtx-pro-6000-server']").check()
    guided.go_on()
    guided.expect_step(3)
    page.locator(f"input[name=split][value='{COPIES_OF_ONE}']").check()
    guided.go_on()
    guided.expect_step(4)
    page.locator("#max_model_len").fill("8192")
    guided.go_on()
    guided.expect_step(5)
    return guided


@pytest.mark.parametrize("language", ["de", "en"])
def test_journey(page: Page, language: str) -> None:
    """Five questions lead to the result, the check page and the quote page."""
    guided = walk(page, language)
    assert guided.result.sentence.startswith(FITS[language])
    page.locator("main .actions a").first.click()
    guided.expect_step(6)
    assert page.locator(".summary-list > div").count() == 5
    page.locator("main .actions a").first.click()
    expect(page.locator("h1")).to_be_visible()


@pytest.mark.parametrize("language", ["de", "en"])
def test_journey_without_javascript_on_a_phone(
    browser: Browser, base_url: str, language: str
) -> None:
    """The same journey works at 390 px with JavaScript switched off."""
    context = browser.new_context(
        base_url=base_url, java_script_enabled=False, viewport={"width": 390, "height": 844}
    )
    try:
        guided = walk(context.new_page(), language)
        assert guided.result.sentence.startswith(FITS[language])
    finally:
        context.close()


def test_workbench_without_javascript(browser: Browser, base_url: str) -> None:
    """The workbench is a plain form with a button where there is no JavaScript."""
    context = browser.new_context(base_url=base_url, java_script_enabled=False)
    try:
        page = context.new_page()
        bench = Workbench(page).open(LLAMA)
        page.locator("#model").fill("qwen3-8b")
        page.locator("#max_model_len").fill("4096")
        page.get_by_role("button", name="Calculate").click()
        assert "4,096 tokens" in bench.result.sentence
        assert page.locator("#model").input_value() == "Qwen3 8B"
    finally:
        context.close()


def test_journey_by_keyboard(page: Page) -> None:
    """Tab, arrows, Space and Enter are enough, and the focus can always be seen."""
    guided = Guided(page).open()
    page.locator("#search").focus()
    page.keyboard.type("llama 3.3 70b")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("search="))
    page.locator("#search").focus()
    page.keyboard.press("Tab")  # the search button
    page.keyboard.press("Tab")  # the first model
    assert page.evaluate("document.activeElement.textContent") == "Llama 3.3 70B Instruct"
    outline = page.evaluate(
        "getComputedStyle(document.activeElement.closest('.choice')).outlineStyle"
        " + getComputedStyle(document.activeElement).outlineStyle"
    )
    assert "solid" in outline
    page.keyboard.press("Enter")
    guided.expect_step(1)
    tab_to(page, "input[name=checkpoint]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("input[name=checkpoint]:checked").input_value() == LLAMA["checkpoint"]
    page.keyboard.press("Enter")
    guided.expect_step(2)
    tab_to(page, "input[name=card]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    guided.expect_step(3)
    tab_to(page, "input[name=split]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    guided.expect_step(4)
    tab_to(page, "#max_model_len")
    page.keyboard.type("8192")
    page.keyboard.press("Enter")
    guided.expect_step(5)
    assert guided.result.sentence.startswith(FITS["en"])


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is in what a selector finds."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab never reaches {selector}")


def test_back_restores_what_was_chosen(page: Page) -> None:
    """The browser's Back leads to the question before, with the answer still chosen."""
    walk(page, "en")
    page.go_back()
    expect(page.locator("#max_model_len")).to_have_value("8192")
    page.go_back()
    assert page.locator(f"input[name=split][value='{COPIES_OF_ONE}']").is_checked()


def test_change_from_the_check_page_returns_to_it(page: Page) -> None:
    """Changing one answer on the check page asks that question alone and comes back."""
    page.goto(address("/en/sizing/check", LLAMA))
    page.get_by_role("link", name=re.compile("Context and load")).click()
    page.locator("#max_model_len").fill("4096")
    page.locator("button[name=go][value='1']").click()
    Guided(page).expect_step(6)
    expect(page.locator("dl")).to_contain_text("4,096 tokens")


def test_wrong_answer_stays_on_the_question(page: Page, watch: Watch) -> None:
    """A wrong answer is named on top and beside the field, with what was typed kept."""
    watch.expect(r"status of 422")
    page.goto(address("/de/auslegung/kontext", {k: LLAMA[k] for k in ("model", "gpu")}))
    page.locator("#max_model_len").fill("1.5K")
    page.locator("button[name=go][value='1']").click()
    assert page.title().startswith("Fehler:")
    assert page.evaluate("document.activeElement.id") == "errors"
    expect(page.locator("#max_model_len")).to_have_value("1.5K")
    page.locator("#errors a").click()
    assert page.evaluate("document.activeElement.id") == "max_model_len"


def test_not_sure_is_an_answer(page: Page) -> None:
    """Somebody who is sure of nothing but the model still gets a result that says what it took."""
    page.goto(
        address(
            RESULT["en"],
            {
                "model": "llama-3.3-70b",
                "checkpoint": "unsure",
                "gpu": "unsure",
                "tensor_parallel_size": "unsure",
                "max_model_len": "unsure",
            },
        )
    )
    text = page.locator("#assumptions").inner_text()
    assert text.count("You were not sure") == 4


def test_model_list_filters_while_typing(page: Page) -> None:
    """The list of models narrows while somebody types, and the count is announced."""
    Guided(page).open()
    page.locator("#search").press_sequentially("gpt-oss", delay=20)
    expect(page.locator("#models .choice")).to_have_count(2)
    expect(page.locator("#status")).to_have_text("2 models")
