"""A test client that refuses to hand over HTML with a mistake in it."""

import re
from collections import Counter
from xml.etree.ElementTree import Element

import html5lib
import httpx2
from fastapi import FastAPI
from starlette.testclient import TestClient

FULL_PAGE = "<!doctype html>"
FIRST_TAG = re.compile(r"\s*(?:<!--.*?-->\s*)*<(\w+)", re.DOTALL)
# a fragment is parsed inside the element it belongs in
CONTAINERS = {
    "tr": "tbody", "td": "tr", "th": "tr", "tbody": "table", "thead": "table", "option": "select",
}  # fmt: skip


class HtmlError(AssertionError):
    """An answer is not good HTML."""


def parse_strictly(html: str) -> Element:
    """Return the tree of a page or fragment.

    Raises:
        HtmlError: a parse error, a doubled id, a page without language, title or its one h1.
    """
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    whole = html.lstrip().lower().startswith(FULL_PAGE)
    first = FIRST_TAG.match(html)
    container = CONTAINERS.get(first.group(1).lower() if first else "", "div")
    try:
        tree: Element = (
            parser.parse(html) if whole else parser.parseFragment(html, container=container)
        )
    except html5lib.html5parser.ParseError as error:
        line, column = parser.tokenizer.stream.position()
        raise HtmlError(f"line {line}, column {column}: {error}\n{html}") from error
    ids = Counter(element.get("id") for element in tree.iter() if element.get("id"))
    if doubled := [name for name, times in ids.items() if times > 1]:
        raise HtmlError(f"ids used more than once: {doubled}")
    if whole:
        _check_page(tree)
    return tree


def _check_page(tree: Element) -> None:
    if tree.get("lang") not in {"de", "en"}:
        raise HtmlError(f"<html lang> is {tree.get('lang')!r}")
    title = tree.find("head/title")
    if title is None or not (title.text or "").strip():
        raise HtmlError("the page has no title")
    headings = list(tree.iter("h1"))
    if len(headings) != 1:
        raise HtmlError(f"the page has {len(headings)} h1, not one")


class StrictClient(TestClient):
    """Starlette's client; every HTML answer is parsed strictly, redirects are not followed.

    `served` is the application, for its state and for routes that only a test needs.
    """

    def __init__(self, app: FastAPI, *, raise_server_exceptions: bool = True) -> None:
        """Watch the answers of an application.

        Args:
            app: the application.
            raise_server_exceptions: False to see the page for a failure instead of the failure.
        """
        super().__init__(
            app,
            base_url="http://127.0.0.1:8000",
            follow_redirects=False,
            raise_server_exceptions=raise_server_exceptions,
        )
        self.served = app
        self.event_hooks = {"response": [_parse]}


def _parse(response: httpx2.Response) -> None:
    response.read()
    if response.headers.get("content-type", "").startswith("text/html") and response.content:
        parse_strictly(response.text)
