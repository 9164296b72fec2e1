"""Quotes in the database: kept with their news in one transaction, found, worked on, forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

import stamina
from sqlalchemy import Connection, RowMapping, delete, desc, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from app.quotes import outbox
from app.quotes.quote import Note, Quote, Sizing, Status
from app.quotes.reference import new_reference, read_reference
from app.quotes.request import Contact
from app.storage.engine import Storage
from app.storage.tables import notes, quotes
from app.storage.unavailable import StorageUnavailableError

PAGE_ROWS: Final = 50
MAX_REFERENCE_DRAWS: Final = 20
_CONTACT: Final = (
    "email", "name", "company", "phone", "country", "quantity", "wished_date", "message",
    "start_log",
)  # fmt: skip
_SIZING: Final = ("answers", "result", "permalink", "data_version")


@dataclass(frozen=True, slots=True)
class Saved:
    """A stored quote. `is_new` is False where the same form had been stored before."""

    quote: Quote
    is_new: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of requests, newest first, and how many there are in all."""

    quotes: tuple[Quote, ...]
    total: int

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.total // PAGE_ROWS))


class Repository:
    """The quotes of one database."""

    def __init__(self, storage: Storage) -> None:
        """Remember the database."""
        self._storage = storage

    # A database that restarts is back within seconds. Trying again is safe: one form is one quote.
    @stamina.retry(on=StorageUnavailableError, attempts=3, timeout=6, wait_initial=0.2)
    def save(self, draft: Quote, channels: Sequence[str]) -> Saved:
        """Store a quote with a new reference, and what must be told to whom.

        Once this returns, quote and news are on the disk. The same `form_id` twice is one quote,
        also from two processes at once. Raises StorageUnavailableError: nothing was stored.
        """
        try:
            with self._storage.write() as connection:
                stored = _by_form(connection, draft.form_id)
                if stored is not None:
                    return Saved(stored, is_new=False)
                quote = replace(draft, reference=_free_reference(connection))
                connection.execute(insert(quotes).values(_row(quote)))
                outbox.announce(connection, quote, channels)
                return Saved(quote, is_new=True)
        except IntegrityError:
            # another process was faster with the same form
            with self._storage.read() as connection:
                stored = _by_form(connection, draft.form_id)
            if stored is None:
                raise
            return Saved(stored, is_new=False)

    def of_form(self, form_id: str) -> Quote | None:
        """Return the quote that came from a form."""
        with self._storage.read() as connection:
            return _by_form(connection, form_id)

    def get(self, quote_id: str) -> Quote | None:
        """Return one quote."""
        with self._storage.read() as connection:
            return get_with(connection, quote_id)

    def search(self, text: str = "", status: Status | None = None, page: int = 1) -> Listing:
        """List quotes whose number, e-mail, name or company holds a text, newest first."""
        chosen = select(quotes)
        if status is not None:
            chosen = chosen.where(quotes.c.status == status)
        if text.strip():
            chosen = chosen.where(_matches(text.strip()))
        ordered = chosen.order_by(desc(quotes.c.created_at), quotes.c.id)
        with self._storage.read() as connection:
            total = connection.execute(
                select(func.count()).select_from(chosen.subquery())
            ).scalar_one()
            rows = connection.execute(
                ordered.limit(PAGE_ROWS).offset((page - 1) * PAGE_ROWS)
            ).mappings()
            return Listing(tuple(_quote(row) for row in rows), total)

    def everything(self) -> tuple[Quote, ...]:
        """Return all quotes, oldest first, for an export."""
        with self._storage.read() as connection:
            rows = connection.execute(select(quotes).order_by(quotes.c.created_at, quotes.c.id))
            return tuple(_quote(row) for row in rows.mappings())

    def set_status(self, quote_id: str, status: Status) -> bool:
        """Say how far the desk is with a quote; False if there is none."""
        with self._storage.write() as connection:
            changed = update(quotes).where(quotes.c.id == quote_id).values(status=status)
            return connection.execute(changed).rowcount > 0

    def add_note(self, quote_id: str, note: Note) -> bool:
        """Write a note beside a quote; False if there is no such quote."""
        with self._storage.write() as connection:
            if get_with(connection, quote_id) is None:
                return False
            connection.execute(insert(notes).values(quote_id=quote_id, **asdict(note)))
            return True

    def notes_of(self, quote_id: str) -> tuple[Note, ...]:
        """Return the notes beside a quote, oldest first."""
        chosen = select(notes).where(notes.c.quote_id == quote_id).order_by(notes.c.id)
        with self._storage.read() as connection:
            return tuple(Note(row.written_at, row.text) for row in connection.execute(chosen))

    def forget(self, quote_ids: Sequence[str], moment: datetime) -> int:
        """Delete quotes with everything about them; say how many there were.

        Receivers that were told of a quote are told of its end, by number only.
        """
        with self._storage.write() as connection:
            for quote_id in quote_ids:
                outbox.withdraw(connection, quote_id, moment)
            gone = connection.execute(delete(quotes).where(quotes.c.id.in_(quote_ids))).rowcount
        self.sweep()
        return gone

    def sweep(self) -> None:
        """Clear files of what deleted quotes left; gives way if somebody reads just now."""
        with suppress(StorageUnavailableError):
            self._storage.sweep()

    def older_than(self, moment: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of quotes from before a moment, oldest first."""
        chosen = (
            select(quotes.c.id)
            .where(quotes.c.created_at < moment)
            .order_by(quotes.c.created_at)
            .limit(limit)
        )
        with self._storage.read() as connection:
            return tuple(connection.execute(chosen).scalars())


def get_with(connection: Connection, quote_id: str) -> Quote | None:
    """Return one quote within a transaction."""
    row = connection.execute(select(quotes).where(quotes.c.id == quote_id)).mappings().first()
    return None if row is None else _quote(row)


def _matches(text: str) -> Any:  # noqa: ANN401 - a condition of SQLAlchemy's
    reference = read_reference(text)
    if reference is not None:
        return quotes.c.reference == reference
    return or_(
        *(
            column.icontains(text, autoescape=True)
            for column in (quotes.c.reference, quotes.c.email, quotes.c.name, quotes.c.company)
        )
    )


def _by_form(connection: Connection, form_id: str) -> Quote | None:
    chosen = select(quotes).where(quotes.c.form_id == form_id)
    row = connection.execute(chosen).mappings().first()
    return None if row is None else _quote(row)


def _free_reference(connection: Connection) -> str:
    for _ in range(MAX_REFERENCE_DRAWS):
        drawn = new_reference()
        taken = connection.execute(select(quotes.c.id).where(quotes.c.reference == drawn)).first()
        if taken is None:
            return drawn
    raise RuntimeError(f"no free reference in {MAX_REFERENCE_DRAWS} draws")


def _row(quote: Quote) -> dict[str, Any]:
    return {
        "id": quote.id,
        "reference": quote.reference,
        "form_id": quote.form_id,
        "created_at": quote.created_at,
        "language": quote.language,
        "status": quote.status,
        "notice_version": quote.notice_version,
        "marketing_at": quote.marketing_at,
        "marketing_version": quote.marketing_version,
        **{name: getattr(quote.contact, name) for name in _CONTACT},
        "answers": dict(quote.sizing.answers),
        "result": dict(quote.sizing.result),
        "permalink": quote.sizing.permalink,
        "data_version": quote.sizing.data_version,
    }


def _quote(row: RowMapping | Mapping[str, Any]) -> Quote:
    marketing_at = row["marketing_at"]
    contact = Contact(**{name: row[name] for name in _CONTACT}, marketing=marketing_at is not None)
    return Quote(
        id=row["id"],
        reference=row["reference"],
        form_id=row["form_id"],
        created_at=row["created_at"],
        language=row["language"],
        status=row["status"],
        contact=contact,
        sizing=Sizing(**{name: row[name] for name in _SIZING}),
        notice_version=row["notice_version"],
        marketing_at=marketing_at,
        marketing_version=row["marketing_version"],
    )
