"""A real server and a real browser, and a watcher that no test can forget."""

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError

AXE = Path(__file__).parents[1] / "vendor" / "axe-core@4.14.1" / "axe.min.js"
CHROMIUM = os.environ.get("SIZING_TEST_CHROMIUM", "/usr/bin/chromium")
CHROMIUM_ARGS = [
    "--no-sandbox",  # needed as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
START_SECONDS = 10.0

Violations = list[dict[str, Any]]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Drive Debian's Chromium; nothing is downloaded."""
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": CHROMIUM_ARGS}


@pytest.fixture(scope="session")
def live_server(app: FastAPI) -> Iterator[str]:
    """Serve the application on a free port of 127.0.0.1; the value is its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if time.monotonic() > deadline or not thread.is_alive():
            pytest.fail("the live server did not start")
        time.sleep(0.02)
    yield "http://{}:{}".format(*listener.getsockname())
    server.should_exit = True
    thread.join(timeout=START_SECONDS)
    listener.close()


@pytest.fixture(scope="session")
def base_url(live_server: str) -> str:
    """Let `page.goto('/de/')` mean the live server."""
    return live_server


class Watch:
    """Collects what must not happen in a browser: console noise, failures, foreign requests."""

    def __init__(self, own_hosts: set[str]) -> None:
        """Remember which hosts a page may talk to.

        Args:
            own_hosts: host:port of our servers.
        """
        self.own_hosts = own_hosts
        self.seen: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    def expect(self, pattern: str) -> None:
        """Allow messages that match, such as the console's note on a wanted 422."""
        self._expected.append(re.compile(pattern))

    def attach(self, context: BrowserContext) -> None:
        """Watch every page of a browser context."""
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.seen.append(f"console {message.type}: {message.text}")

    def _error(self, error: WebError) -> None:
        self.seen.append(f"script error: {error.error}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https"} and parts.netloc not in self.own_hosts:
            self.seen.append(f"request to another host: {request.url}")

    def unexpected(self) -> list[str]:
        """Return what was seen and not expected."""
        return [
            line for line in self.seen if not any(known.search(line) for known in self._expected)
        ]


@pytest.fixture(autouse=True)
def watch(context: BrowserContext, live_server: str) -> Iterator[Watch]:
    """Fail the test on any console message, script error or request to another host."""
    watch = Watch({urlsplit(live_server).netloc})
    watch.attach(context)
    yield watch
    if seen := watch.unexpected():
        pytest.fail("the browser reported:\n" + "\n".join(seen))


@pytest.fixture
def axe() -> Callable[[Page], Violations]:
    """Return a function that lists what axe-core finds on a page, best practices included."""
    source = AXE.read_text(encoding="utf-8")

    def run(page: Page) -> Violations:
        # evaluate is not subject to the page's policy, a script element would be
        page.evaluate(source)
        violations: Violations = page.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
            ".map(v => ({id: v.id, impact: v.impact, help: v.help,"
            " nodes: v.nodes.map(n => n.target.join(' '))}))"
        )
        return violations

    return run
