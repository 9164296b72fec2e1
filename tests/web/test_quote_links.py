"""Addresses in mails: they lead to the request, and to a desk only where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.quotes.desk_login import hash_of
from tests.strict_client import StrictClient
from tests.web.quote_form import ENGLISH, GERMAN, office, send, stored

BASE = "https://sizing.example"


@pytest.mark.parametrize("form", [ENGLISH, GERMAN])
def test_the_links_of_a_mail_lead_to_the_request(
    make_client: Callable[..., StrictClient], tmp_path: Path, form: str
) -> None:
    """The customer's address opens what was sent; the desk has its own, of the same request."""
    client = make_client(
        data_dir=tmp_path, quote_min_seconds=0, base_url=BASE, desk_password_hash=hash_of("a desk")
    )
    send(client, form, name="Ann Example")
    (quote,) = stored(client)
    link = office(client)._customer_link(quote)
    assert link.startswith(f"{BASE}/{quote.language}/")
    page = client.get(link.removeprefix(BASE))
    assert page.status_code == 200
    assert "Ann Example" in page.text
    assert client.get(link.removeprefix(BASE)[:-1]).status_code == 404
    assert office(client)._desk_link(quote) == f"{BASE}/desk/quotes/{quote.id}"


def test_without_a_password_no_mail_names_a_desk(
    make_client: Callable[..., StrictClient], tmp_path: Path
) -> None:
    """An instance without a desk has no address of one."""
    client = make_client(data_dir=tmp_path, quote_min_seconds=0)
    send(client)
    (quote,) = stored(client)
    assert office(client)._desk_link(quote) is None
