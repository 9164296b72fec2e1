"""The sender's own link: see, take along, delete; nobody else's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app.quotes.quote import Quote
from app.web.quote_links import customer_link
from tests.strict_client import StrictClient
from tests.web.quote_form import ENGLISH, GERMAN, office, send, stored

pytestmark = pytest.mark.slow

Make = Callable[..., StrictClient]


@pytest.fixture
def client(make_client: Make, tmp_path: Path) -> StrictClient:
    """Return a client of an instance with its own database."""
    return make_client(data_dir=tmp_path, quote_min_seconds=0)


@pytest.fixture(params=[ENGLISH, GERMAN])
def quote(client: StrictClient, request: pytest.FixtureRequest) -> Quote:
    """Return a stored request, once in each language."""
    send(client, request.param, name="Ann Example", start_log="INFO <log>", message="Hi & hello")
    (found,) = stored(client)
    return found


@pytest.fixture
def link(client: StrictClient, quote: Quote) -> str:
    """Return the path of the link in the customer's mail."""
    renderer = client.served.state.renderer
    return customer_link(renderer, "", office(client).signer, quote)


def _part(link: str, quote: Quote, part: str) -> str:
    german = {"delete": "loeschen", "export": "export"}
    name = german[part] if quote.language == "de" else part
    return link.replace("?", f"/{name}?")


def test_the_link_shows_what_was_sent(client: StrictClient, quote: Quote, link: str) -> None:
    """Contact, figures, permalink and the date of deletion, kept by no cache and no index."""
    page = client.get(link)
    assert page.status_code == 200
    for text in (quote.reference, "Ann Example", "Hi &amp; hello", "INFO &lt;log&gt;", "8"):
        assert text in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-robots-tag"] == "noindex"
    assert "set-cookie" not in page.headers


def test_the_export_holds_everything(client: StrictClient, quote: Quote, link: str) -> None:
    """The file has contact, answers and the whole frozen result."""
    answer = client.get(_part(link, quote, "export"))
    exported = json.loads(answer.text)
    assert f"{quote.reference}.json" in answer.headers["content-disposition"]
    assert exported["contact"]["email"] == "ann@example.com"
    assert exported["contact"]["start_log"] == "INFO <log>"
    assert exported["result"] == quote.sizing.result


def test_deleting_asks_first_and_leaves_nothing(
    client: StrictClient, quote: Quote, link: str
) -> None:
    """A click on the link deletes nothing; the button does, and the link is then dead."""
    address = _part(link, quote, "delete")
    question = client.get(address)
    assert question.status_code == 200
    assert len(stored(client)) == 1
    assert re.search(r"<form method=\"post\"", question.text)
    assert client.post(address).status_code == 200
    assert stored(client) == ()
    assert client.get(link).status_code == 404
    assert client.post(address).status_code == 404


def test_another_site_deletes_nothing(client: StrictClient, quote: Quote, link: str) -> None:
    """Even with the link, a form on another site is refused."""
    address = _part(link, quote, "delete")
    answer = client.post(address, headers={"origin": "https://evil.example"})
    assert answer.status_code == 403
    assert len(stored(client)) == 1


@pytest.mark.parametrize("part", ["", "export", "delete"])
def test_only_its_own_token_opens_a_request(
    client: StrictClient, quote: Quote, link: str, part: str
) -> None:
    """Without a token, with a changed one, or with another request's, there is nothing to see."""
    address = _part(link, quote, part) if part else link
    other = office(client).signer.link_token("0" * 32)
    for wrong in (
        address.split("?")[0],
        f"{address}x",
        re.sub(r"token=.*", f"token={other}", address),
    ):
        answer = client.get(wrong)
        assert answer.status_code == 404
        assert "ann@example.com" not in answer.text
    assert len(stored(client)) == 1


def test_the_page_cannot_be_framed(client: StrictClient, quote: Quote, link: str) -> None:
    """What can be deleted is shown in no frame."""
    assert "frame-ancestors 'none'" in client.get(link).headers["content-security-policy"]
    assert client.get(f"/embed{link}").status_code == 404
