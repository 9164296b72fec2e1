"""One quote request as it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from app.quotes.request import Contact

Language = Literal["de", "en"]
Status = Literal["new", "working", "offered", "closed"]
STATUSES: Final[tuple[Status, ...]] = ("new", "working", "offered", "closed")


@dataclass(frozen=True, slots=True)
class Sizing:
    """What was asked and answered, frozen: it reads the same in a year.

    `answers` are the names and texts of the link, `result` is the JSON of the API, `permalink` is
    None where a pasted configuration is too long for a link.
    """

    answers: Mapping[str, str]
    result: Mapping[str, Any]
    permalink: str | None
    data_version: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A stored request. `form_id` is the form it came from."""

    id: str
    reference: str
    form_id: str
    created_at: datetime
    language: Language
    status: Status
    contact: Contact
    sizing: Sizing
    notice_version: str
    marketing_at: datetime | None = None
    marketing_version: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something the desk wrote down about a request."""

    written_at: datetime
    text: str


def as_json(quote: Quote) -> dict[str, Any]:
    """Return everything about a request as JSON: for its sender, the desk, and webhooks."""
    contact = asdict(quote.contact)
    contact["marketing"] = (
        None
        if quote.marketing_at is None
        else {"at": quote.marketing_at.isoformat(), "text_version": quote.marketing_version}
    )
    return {
        "id": quote.id,
        "reference": quote.reference,
        "created_at": quote.created_at.isoformat(),
        "language": quote.language,
        "status": quote.status,
        "notice_version": quote.notice_version,
        "contact": contact,
        "answers": dict(quote.sizing.answers),
        "permalink": quote.sizing.permalink,
        "data_version": quote.sizing.data_version,
        "result": dict(quote.sizing.result),
    }


def deleted_on(quote: Quote, retention_days: int) -> datetime:
    """Return when a quote is forgotten."""
    return quote.created_at + timedelta(days=retention_days)
