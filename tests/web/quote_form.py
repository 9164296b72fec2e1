"""A person at the quote form, for the tests of its pages."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import httpx2

from app.quotes.office import Office
from app.quotes.quote import Quote
from tests.quotes.drafts import ANSWERS
from tests.strict_client import StrictClient

QUERY = urlencode(ANSWERS)
ENGLISH = f"/en/quote?{QUERY}"
GERMAN = f"/de/angebot?{QUERY}"
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


def token_of(page: httpx2.Response) -> str:
    """Return the token of a form."""
    found = TOKEN.search(page.text)
    assert found is not None, page.text
    return found[1]


def open_form(client: StrictClient, address: str = ENGLISH) -> str:
    """Open the form; return its token."""
    page = client.get(address)
    assert page.status_code == 200
    return token_of(page)


def send(client: StrictClient, address: str = ENGLISH, **fields: str) -> httpx2.Response:
    """Send a form that was opened before or is opened now."""
    filled = {"email": "ann@example.com", **fields}
    if "form_token" not in filled:
        filled["form_token"] = open_form(client, address)
    return client.post(address, data=filled)


def follow(client: StrictClient, answer: httpx2.Response) -> httpx2.Response:
    """Go where a sent form leads."""
    assert answer.status_code == 303, answer.text
    return client.get(answer.headers["location"])


def stored(client: StrictClient) -> tuple[Quote, ...]:
    """Return what is stored."""
    return office(client).repository.everything()


def office(client: StrictClient) -> Office:
    """Return the office behind a client."""
    found: Office = client.served.state.office
    return found


def counted(client: StrictClient, outcome: str) -> float:
    """Return how often a form had an outcome."""
    registry = office(client).metrics.registry
    return registry.get_sample_value("sizing_quotes_total", {"outcome": outcome}) or 0.0
