"""Mails to the desk and the customer: written from the quote, text and HTML, then handed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final, Protocol
from urllib.parse import urlsplit

from app.quotes.figures import figures_of
from app.quotes.outbox import Delivery
from app.quotes.quote import Language, Quote, deleted_on
from app.quotes.token import now

LOG_NAME: Final = "vllm-start.log"


class Render(Protocol):
    """How a template becomes text in a language."""

    def __call__(self, language: Language, template: str, **context: object) -> str:
        """Return the text."""


@dataclass(frozen=True, slots=True)
class Links:
    """Whole addresses that mails point to; `desk` gives None where there is no desk."""

    customer: Callable[[Quote], str]
    desk: Callable[[Quote], str | None]


@dataclass(frozen=True, slots=True)
class Letterhead:
    """Who writes, to whom, and about whose servers. `desk_language` is that of the desk's mails."""

    vendor_name: str
    sender: str
    desk_email: str
    desk_language: Language
    retention_days: int
    base_url: str


class Transport(Protocol):
    """Takes a finished mail."""

    async def __call__(self, message: EmailMessage) -> None:
        """Hand it over. Raises DeliveryError."""


class Mails:
    """The sender of one of the two mails."""

    def __init__(
        self, template: str, letterhead: Letterhead, render: Render, links: Links, *,
        transport: Transport,
    ) -> None:  # fmt: skip
        """Remember what is written and who takes it.

        Args:
            template: `desk` or `customer`; templates/email/ has a subject, text and HTML of each.
            letterhead: sender, receiver and vendor.
            render: makes texts of templates.
            links: addresses in the mail.
            transport: takes the mail.
        """
        self._template = template
        self._letterhead = letterhead
        self._render = render
        self._links = links
        self._transport = transport

    async def send(self, delivery: Delivery, quote: Quote | None) -> None:
        """Write the mail and hand it over."""
        if quote is not None:
            await self._transport(self.message(delivery, quote))

    def message(self, delivery: Delivery, quote: Quote) -> EmailMessage:
        """Write the mail. The same delivery always has the same Message-ID."""
        head, contact = self._letterhead, quote.contact
        to_desk = self._template == "desk"
        language = head.desk_language if to_desk else quote.language
        mail = EmailMessage(policy=SMTP)
        mail["From"] = Address(head.vendor_name, addr_spec=head.sender)
        customer = Address(contact.name, addr_spec=contact.email)
        mail["To"] = Address(addr_spec=head.desk_email) if to_desk else customer
        mail["Reply-To"] = customer if to_desk else Address(addr_spec=head.desk_email)
        mail["Subject"] = " ".join(self._text(language, "subject.txt", quote).split())
        mail["Date"] = format_datetime(now())
        host = urlsplit(head.base_url).hostname or "localhost"
        mail["Message-ID"] = f"<{delivery.idempotency_key}@{host}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(self._text(language, "txt", quote))
        mail.add_alternative(self._text(language, "html", quote), subtype="html")
        if to_desk and contact.start_log:
            mail.add_attachment(contact.start_log, filename=LOG_NAME)
        # last, as adding content drops or moves such headers
        mail["Content-Language"] = language
        return mail

    def _text(self, language: Language, kind: str, quote: Quote) -> str:
        head = self._letterhead
        return self._render(
            language,
            f"email/{self._template}.{kind}",
            quote=quote,
            contact=quote.contact,
            figures=figures_of(quote.sizing.result),
            vendor_name=head.vendor_name,
            customer_link=self._links.customer(quote),
            desk_link=self._links.desk(quote),
            deleted_on=deleted_on(quote, head.retention_days),
        )
