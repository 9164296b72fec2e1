"""The workbench: what a sales engineer does with a customer on the phone."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.pages import LLAMA, Workbench

UNPROCESSABLE = r"status of 422"


def test_choice_recalculates_at_once(page: Page) -> None:
    """A choice changes result and address, and a person who hears the page is told once."""
    bench = Workbench(page).open(LLAMA)
    bench.choose("kv_cache_dtype", "bfloat16")
    assert bench.result.sentence.startswith("6 requests")
    assert bench.answers["kv_cache_dtype"] == "bfloat16"
    expect(page.locator("#status")).to_contain_text("6 requests of 8,192 tokens")
    assert page.evaluate("document.activeElement.id") == "kv_cache_dtype"


def test_typing_keeps_focus_and_adds_no_history(page: Page) -> None:
    """Typing recalculates after a pause, in one history entry, and leaves the cursor in place."""
    bench = Workbench(page).open(LLAMA)
    before = page.evaluate("history.length")
    bench.type("max_model_len", "4096")
    assert "4,096 tokens" in bench.result.sentence
    assert bench.answers["max_model_len"] == "4096"
    assert page.evaluate("document.activeElement.id") == "max_model_len"
    assert page.locator("#max_model_len").input_value() == "4096"
    assert page.evaluate("history.length") == before


def test_back_forward_and_reload(page: Page) -> None:
    """Back, Forward and reload show the same form and the same result as before."""
    bench = Workbench(page).open(LLAMA)
    bench.choose("kv_cache_dtype", "bfloat16")
    bench.split(2)
    there = bench.result.sentence
    page.go_back()
    expect(page.locator("#verdict-sentence")).to_contain_text("6 requests")
    expect(page.locator("#kv_cache_dtype")).to_have_value("bfloat16")
    expect(page.locator("input[name=tensor_parallel_size]:checked")).to_have_value("1")
    page.go_forward()
    expect(page.locator("#verdict-sentence")).to_contain_text(there.split(" ")[0])
    expect(page.locator("input[name=tensor_parallel_size]:checked")).to_have_value("2")
    page.reload()
    assert bench.result.sentence == there


def test_model_search(page: Page) -> None:
    """Typing part of a name, arrow and Enter choose a model; its precision follows."""
    bench = Workbench(page).open(LLAMA)
    field = page.get_by_role("combobox", name="Model")
    field.click()
    field.press_sequentially("qwen3 8b")
    expect(page.get_by_role("option").first).to_contain_text("Qwen3 8B")
    field.press("ArrowDown")
    with page.expect_response(re.compile("workbench")):
        field.press("Enter")
    bench.settle()
    assert bench.answers["model"] == "qwen3-8b"
    expect(field).to_have_value("Qwen3 8B")
    expect(page.locator("#checkpoint")).to_have_value(re.compile("Qwen3-8B"))
    field.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_open_sections_stay_open(page: Page) -> None:
    """What somebody unfolded stays unfolded when the result is recalculated."""
    bench = Workbench(page).open(LLAMA)
    page.get_by_text("How we got here").click()
    bench.choose("kv_cache_dtype", "bfloat16")
    expect(page.locator("#steps details")).to_have_attribute("open", "")
    assert page.locator(".derivation").is_visible()


def test_wrong_entry_keeps_address_and_focus(page: Page, watch: Watch) -> None:
    """A wrong entry is named beside the field and on top; the address keeps the last good case."""
    watch.expect(UNPROCESSABLE)
    bench = Workbench(page).open(LLAMA)
    bench.type("max_model_len", "1.5K")
    expect(page.locator("#errors a")).to_contain_text("1.5K")
    beside_the_field = page.locator("#max_model_len-error").inner_text()
    assert page.locator("#errors a").inner_text() == beside_the_field
    assert bench.answers["max_model_len"] == "8192"
    assert page.title().startswith("Error:")
    assert page.locator("#max_model_len").input_value() == "1.5K"
    assert page.evaluate("document.activeElement.id") == "max_model_len"
    bench.type("max_model_len", "1536")
    assert "1,536 tokens" in bench.result.sentence
    assert page.title().startswith("Workbench")


def test_wrong_entry_on_load_moves_focus_to_the_summary(page: Page, watch: Watch) -> None:
    """A page that opens with a wrong entry starts at its summary, whose link leads to the field."""
    watch.expect(UNPROCESSABLE)
    Workbench(page, "de").open({**LLAMA, "max_model_len": "1.5K"})
    assert page.title().startswith("Fehler:")
    assert page.evaluate("document.activeElement.id") == "errors"
    page.locator("#errors a").click()
    assert page.evaluate("document.activeElement.id") == "max_model_len"


def test_unreachable_server_keeps_the_old_result(page: Page, watch: Watch) -> None:
    """When an answer does not arrive, a banner says so, the old result stays, and a retry works."""
    watch.expect(r"ERR_FAILED|Failed to fetch|htmx:error|TypeError")
    bench = Workbench(page).open(LLAMA)
    page.route("**/en/workbench?*", lambda route: route.abort())
    page.locator("#kv_cache_dtype").select_option("bfloat16")
    expect(page.get_by_role("alert")).to_contain_text("did not arrive")
    assert bench.result.sentence.startswith("12 requests")
    page.unroute("**/en/workbench?*")
    with page.expect_response(re.compile("workbench")):
        page.get_by_role("button", name="Try again").click()
    bench.settle()
    assert bench.result.sentence.startswith("6 requests")
    expect(page.locator("#connection")).to_be_hidden()


def test_copy_buttons(page: Page) -> None:
    """Command and link can be copied with a button."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    Workbench(page).open(LLAMA)
    page.get_by_role("button", name="Copy the command").click()
    expect(page.locator("#status")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("vllm serve nvidia/Llama-3.3-70B-Instruct-FP8")


def test_language_switch_keeps_the_case(page: Page) -> None:
    """The other language shows the same case with the same figure."""
    bench = Workbench(page).open({**LLAMA, "kv_cache_dtype": "bfloat16"})
    page.get_by_role("link", name="DE", exact=True).click()
    assert page.url.split("?")[0].endswith("/de/rechner")
    assert bench.result.sentence.startswith("6 Anfragen")


def test_verdict_is_above_the_fold(page: Page) -> None:
    """Verdict and key figure are on the first screen, on a desktop and on a phone."""
    for width, height in ((1280, 800), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        Workbench(page).open(LLAMA)
        box = page.locator(".key-figures").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height, f"{width} px"


def test_inputs_open_on_a_phone(page: Page) -> None:
    """On a phone the inputs fold above the result and open with a tap."""
    page.set_viewport_size({"width": 390, "height": 844})
    bench = Workbench(page).open(LLAMA)
    assert not page.locator("#max_model_len").is_visible()
    page.get_by_text("Change the inputs").click()
    bench.type("max_model_len", "4096")
    assert "4,096 tokens" in bench.result.sentence
