"""Mails say what was stored, in two forms and two languages, and cannot be bent."""

from __future__ import annotations

import asyncio
from email.message import EmailMessage
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.quotes.delivery.smtp import print_mail
from app.quotes.outbox import Delivery
from app.quotes.quote import Quote
from app.quotes.request import read_quote_form
from tests.quotes.conftest import CREATED, Draft
from tests.quotes.letters import mails
from tests.strict_client import parse_strictly

DELIVERY: dict[str, Any] = {
    "id": 1, "quote_id": "q", "reference": "482-719-536", "channel": "customer_mail",
    "event": "created", "idempotency_key": "k" * 32, "created_at": CREATED, "attempts": 1,
}  # fmt: skip


def written(app: FastAPI, template: str, quote: Quote) -> EmailMessage:
    """Return the mail of a quote."""
    sender = mails(template, app.state.renderer, print_mail)
    return sender.message(Delivery(**DELIVERY), quote)


def _part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    content: str = body.get_content()
    return content


@pytest.mark.parametrize(
    ("language", "figure", "word"),
    [
        ("en", "12 requests of 8,192 tokens", "Wished date"),
        ("de", "12 Anfragen mit je 8.192 Token", "Wunschtermin"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_the_customer_reads_what_was_stored(
    app: FastAPI, draft: Draft, language: str, figure: str, word: str, kind: str
) -> None:
    """Text and HTML, German and English: figures, own words, permalink, own link."""
    quote = draft(language=language, message="Zwei Netzteile", wished_date="März")
    content = _part(written(app, "customer", quote), kind)
    for piece in (figure, word, "Zwei Netzteile", "März", f"/own/{quote.id}", "ann@example.com"):
        assert piece in content
    permalink = quote.sizing.permalink or ""
    assert permalink.replace("&", "&amp;" if kind == "html" else "&") in content


def test_the_desk_reads_its_own_language_and_can_reply(app: FastAPI, draft: Draft) -> None:
    """The desk's mail is German whatever the customer speaks; a reply goes to the customer."""
    mail = written(app, "desk", draft(language="en"))
    assert "Angebotsanfrage" in mail["Subject"]
    assert (mail["To"], mail["Reply-To"]) == ("sales@example.com", "Ann Example <ann@example.com>")
    assert "/desk/" in _part(mail, "plain")


def test_an_attached_log_reaches_the_desk_and_nobody_else(app: FastAPI, draft: Draft) -> None:
    """The start log is a file of the desk's mail and no part of the customer's."""
    quote = draft(start_log="INFO \x1b[0m one\nINFO two")
    (attached,) = written(app, "desk", quote).iter_attachments()
    assert attached.get_content().rstrip("\n") == quote.contact.start_log
    assert attached.get_filename() == "vllm-start.log"
    assert list(written(app, "customer", quote).iter_attachments()) == []


def test_a_delivery_keeps_its_message_id(app: FastAPI, draft: Draft) -> None:
    """The same delivery written twice carries one Message-ID, so a second copy is recognised."""
    quote = draft()
    first, second = (written(app, "customer", quote) for _ in range(2))
    assert first["Message-ID"] == second["Message-ID"] == f"<{'k' * 32}@sizing.example>"
    assert first["Auto-Submitted"] == "auto-generated"


@pytest.mark.parametrize("template", ["desk", "customer"])
@pytest.mark.parametrize("language", ["de", "en"])
def test_the_html_is_good_and_quiet(
    app: FastAPI, draft: Draft, template: str, language: str
) -> None:
    """It parses strictly, fetches nothing, runs nothing, and shows markup as typed."""
    quote = draft(
        language=language, name="<b>Ann</b>", message="<script>alert(1)</script>\n& so on"
    )
    content = _part(written(app, template, quote), "html")
    tree = parse_strictly(content)
    fetching = {"img", "script", "link", "iframe", "object", "video", "audio", "style", "form"}
    assert not fetching & {element.tag for element in tree.iter()}
    assert "url(" not in content
    assert "<script>alert(1)</script>\n& so on" in "".join(tree.itertext())


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.fixed_dictionaries(
        {
            name: st.text(max_size=60)
            for name in ("name", "company", "phone", "country", "wished_date", "message")
        }
    )
)
def test_no_entry_adds_a_header(app: FastAPI, draft: Draft, texts: dict[str, str]) -> None:
    """Whatever passes the form, a mail has its own headers and two receivers that we chose."""
    form = read_quote_form({"email": "ann@example.com", **texts})
    fields = ("name", "company", "phone", "country", "wished_date", "message")
    quote = draft(**{name: getattr(form.contact, name) for name in fields})
    for template in ("desk", "customer"):
        raw = written(app, template, quote).as_bytes()
        head = raw.split(b"\r\n\r\n", 1)[0].decode()
        names = [
            line.split(":")[0] for line in head.split("\r\n") if not line.startswith((" ", "\t"))
        ]
        assert sorted(names) == sorted(
            [
                "From", "To", "Reply-To", "Subject", "Date", "Message-ID", "Auto-Submitted",
                "Content-Language", "MIME-Version", "Content-Type",
            ]
        )  # fmt: skip


def test_a_developer_sees_the_mail(
    app: FastAPI, draft: Draft, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a mail server the text is printed, and it says that nothing was sent."""
    asyncio.run(print_mail(written(app, "customer", draft())))
    printed = capsys.readouterr().out
    assert "only printed; set SIZING_SMTP_HOST" in printed
    assert "482-719-536" in printed or "12 requests" in printed
