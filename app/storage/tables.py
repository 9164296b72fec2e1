"""The tables. `migrations/` brings a database to exactly this; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

ID_LENGTH: Final = 32
REFERENCE_LENGTH: Final = 11


class UtcDateTime(TypeDecorator[datetime]):
    """A moment. SQLite keeps no time zone, so it is stored as UTC and comes back aware."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Write as UTC. Raises ValueError for a moment without time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored moment needs a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Read as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# One quote request: who asks, what was asked, and the figures as they were that day.
quotes: Final = Table(
    "quotes",
    metadata,
    Column("id", String(ID_LENGTH), primary_key=True),
    Column("reference", String(REFERENCE_LENGTH), nullable=False, unique=True),
    # the form it came from; the same form twice is one quote
    Column("form_id", String(ID_LENGTH), nullable=False, unique=True),
    Column("created_at", UtcDateTime(), nullable=False, index=True),
    Column("language", String(2), nullable=False),
    Column("status", String(16), nullable=False),
    Column("email", String(254), nullable=False),
    Column("name", String(200), nullable=False),
    Column("company", String(200), nullable=False),
    Column("phone", String(50), nullable=False),
    Column("country", String(100), nullable=False),
    Column("quantity", Integer),
    Column("wished_date", String(60), nullable=False),
    Column("message", Text, nullable=False),
    Column("start_log", Text, nullable=False),
    Column("notice_version", String(20), nullable=False),
    # when somebody ticked the box for marketing, and the text beside it; null: not ticked
    Column("marketing_at", UtcDateTime()),
    Column("marketing_version", String(20)),
    Column("answers", JSON, nullable=False),
    Column("permalink", Text),
    Column("data_version", String(40), nullable=False),
    Column("result", JSON, nullable=False),
)

# What the sales desk writes down; rows are added, never changed, so two people lose nothing.
notes: Final = Table(
    "notes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column(
        "quote_id",
        ForeignKey("quotes.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("written_at", UtcDateTime(), nullable=False),
    Column("text", Text, nullable=False),
)

# What must still be told to whom. Holds no personal data: mails and webhooks are written from the
# quote when they are sent. No foreign key, as the news of a deletion outlives the quote.
outbox: Final = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("quote_id", String(ID_LENGTH), nullable=False, index=True),
    Column("reference", String(REFERENCE_LENGTH), nullable=False),
    Column("channel", String(16), nullable=False),
    Column("event", String(16), nullable=False),
    Column("idempotency_key", String(ID_LENGTH), nullable=False, unique=True),
    Column("created_at", UtcDateTime(), nullable=False),
    Column("attempts", Integer, nullable=False),
    # null once it is delivered or dead
    Column("next_attempt_at", UtcDateTime()),
    Column("leased_by", String(ID_LENGTH)),
    Column("leased_until", UtcDateTime()),
    Column("delivered_at", UtcDateTime()),
    Column("dead_at", UtcDateTime()),
    # a code, never a server's words: those may quote an address
    Column("last_error", String(60)),
    Index("ix_outbox_due", "channel", "next_attempt_at"),
)
