"""The wizard inside a vendor's page: one script tag, a frame that follows, nothing that leaks."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import FrameLocator, Page, expect

from app.main import create_app
from app.settings import Settings
from tests.browser.conftest import Watch
from tests.browser.pages import LLAMA, address

HOST_PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Vendor</title>
<link rel="icon" href="data:,"></head><body><h1>Servers</h1>
<script src="{origin}/static/js/embed.js" {attributes} async></script></body></html>"""


@pytest.fixture
def host() -> Iterator[Callable[[str], str]]:
    """Serve pages of another site; the function returns the address of one with this HTML."""
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, b"")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def serve(html: str) -> str:
        path = f"/{len(pages)}"
        pages[path] = html.encode()
        return f"http://localhost:{server.server_port}{path}"

    serve.origin = f"http://localhost:{server.server_port}"  # type: ignore[attr-defined]
    yield serve
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def sizing(host: Callable[[str], str], watch: Watch) -> Iterator[str]:
    """Run an instance that only the host's origin may embed; the value is its address."""
    origin: str = host.origin  # type: ignore[attr-defined]
    app = create_app(Settings(frame_ancestors=(origin,), log_level="error"))
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    watch.own_hosts |= {f"127.0.0.1:{port}", urlsplit(origin).netloc}
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def embed(page: Page, host: Callable[[str], str], sizing: str, attributes: str) -> FrameLocator:
    """Open a host page with the script and return its frame."""
    page.goto(host(HOST_PAGE.format(origin=sizing, attributes=attributes)))
    return page.frame_locator("iframe")


def test_frame_grows_and_shrinks_with_its_content(
    page: Page, host: Callable[[str], str], sizing: str
) -> None:
    """The frame is as high as its content, so it never has a scroll bar of its own."""
    frame = embed(page, host, sizing, "data-lang=en data-page=workbench")
    expect(frame.locator("#verdict-sentence")).to_be_visible()
    page.wait_for_function("Number(document.querySelector('iframe').height) > 2000")
    tall = int(page.locator("iframe").get_attribute("height") or 0)
    frame.get_by_text("How we got here").click()
    page.wait_for_function(f"Number(document.querySelector('iframe').height) > {tall}")
    frame.get_by_text("How we got here").click()
    page.wait_for_function(f"Number(document.querySelector('iframe').height) <= {tall}")
    assert page.locator("iframe").get_attribute("title")


def test_embedded_pages_have_no_header_and_keep_the_frame(
    page: Page, host: Callable[[str], str], sizing: str
) -> None:
    """Embedded pages have no header or footer; every link in them stays below /embed."""
    frame = embed(page, host, sizing, "data-lang=de data-theme=dark data-accent=8fd0ff")
    expect(frame.locator("h1")).to_be_visible()
    assert frame.locator(".page-header").count() == 0
    frame.get_by_role("link", name="Schritt für Schritt").click()
    expect(frame.locator("#search")).to_be_visible()
    inner = page.frames[-1]
    assert "/embed/de/auslegung/modell" in inner.url
    assert "theme=dark" in inner.url
    assert "accent=8fd0ff" in inner.url
    colour = inner.evaluate("getComputedStyle(document.documentElement).colorScheme")
    assert colour == "dark"
    frame.locator("#search").fill("gpt-oss")
    frame.get_by_role("button", name="Suchen").click()
    expect(frame.locator("#models .choice")).to_have_count(2)
    assert "theme=dark" in page.frames[-1].url


def test_other_sites_cannot_embed(
    page: Page, host: Callable[[str], str], live_server: str, watch: Watch
) -> None:
    """An instance that does not list a site refuses to be shown in its pages."""
    watch.own_hosts.add(urlsplit(host.origin).netloc)  # type: ignore[attr-defined]
    watch.expect(r"frame-ancestors|ERR_BLOCKED_BY_RESPONSE|Refused to frame|Framing")
    embed(page, host, live_server, "data-lang=en")
    page.wait_for_timeout(500)
    assert page.frame_locator("iframe").locator(".doors").count() == 0
    assert "frame-ancestors" in "\n".join(watch.seen)


def test_host_ignores_foreign_messages(page: Page, host: Callable[[str], str], sizing: str) -> None:
    """Heights from another window or of a silly size do not count."""
    frame = embed(page, host, sizing, "data-lang=en")
    expect(frame.locator("h1")).to_be_visible()
    page.wait_for_timeout(200)
    before = page.locator("iframe").get_attribute("height")
    page.evaluate("window.postMessage({type: 'vllm-sizing:height', height: 5000}, '*')")
    page.wait_for_timeout(100)
    assert page.locator("iframe").get_attribute("height") == before
    page.frames[-1].evaluate("parent.postMessage({type: 'vllm-sizing:height', height: 1e9}, '*')")
    page.wait_for_function("document.querySelector('iframe').height === '10000'")


def test_no_cookie_in_a_foreign_frame(page: Page, host: Callable[[str], str], sizing: str) -> None:
    """Inside another site's page the wizard sets no cookie and stores nothing."""
    frame = embed(page, host, sizing, "data-lang=en data-page=workbench")
    expect(frame.locator("#verdict-sentence")).to_be_visible()
    assert page.context.cookies() == []
    # a browser may refuse the very question in a foreign frame
    stored = page.frames[-1].evaluate(
        "() => { try { return localStorage.length + sessionStorage.length }"
        " catch { return 'refused' } }"
    )
    assert stored in {0, "refused"}


def test_outside_links_leave_the_frame(page: Page) -> None:
    """Links to other sites inside an embedded page open outside the frame."""
    page.goto(address("/embed/en/workbench", LLAMA))
    outside = page.locator("a[href^='http']")
    for index in range(outside.count()):
        target = outside.nth(index).get_attribute("target") or ""
        assert re.match(r"_top|_blank", target)
