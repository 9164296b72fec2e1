"""The browser's side of the house: the watcher and axe really see what they must see."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from tests.browser.conftest import Watch


def test_error_page_is_clean(page: Page, watch: Watch, axe: Callable[[Page], Any]) -> None:
    """The error page loads without a console message but for its own 404, and axe finds nothing."""
    watch.expect(r"status of 404")
    page.goto("/de/nirgends")
    assert page.title().startswith("Fehler 404")
    assert axe(page) == []


def test_axe_finds_a_planted_mistake(page: Page, watch: Watch, axe: Callable[[Page], Any]) -> None:
    """An image without a text and a field without a label are reported, so silence means clean."""
    watch.expect(r"status of 404")
    page.goto("/en/nowhere")
    page.evaluate(
        "() => { const main = document.querySelector('main');"
        " main.append(document.createElement('img'), document.createElement('input')); }"
    )
    assert {"image-alt", "label"} <= {violation["id"] for violation in axe(page)}


def test_watcher_sees_policy_violations_and_foreign_hosts(page: Page, watch: Watch) -> None:
    """An inline style and an image from another host are reported, so silence means clean."""
    watch.expect(r"status of 404")
    page.goto("/en/nowhere")
    page.evaluate(
        "() => { document.querySelector('main').setAttribute('style', 'color: red');"
        " const image = new Image(); image.src = 'http://127.0.0.2:9/x.png';"
        " document.body.append(image); }"
    )
    page.wait_for_timeout(200)
    seen = "\n".join(watch.unexpected())
    assert "style" in seen
    assert "127.0.0.2" in seen
    watch.expect(r"Content Security Policy|127\.0\.0\.2|ERR_")


def test_htmx_starts_under_the_policy(page: Page, watch: Watch) -> None:
    """The vendored htmx loads and starts without breaking the content security policy."""
    watch.expect(r"status of 404")
    page.goto("/en/nowhere")
    assert page.evaluate("() => typeof window.htmx") == "object"
