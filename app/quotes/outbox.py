"""What must still be told to whom. Rows are written with the quote and end delivered or dead.

A process leases rows before it works on them. If it dies, the lease runs out and another process
takes over, so something may be told twice, but always under the same idempotency key.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import Connection, RowMapping, delete, desc, func, insert, or_, select, update

from app.quotes.quote import Quote
from app.quotes.token import new_id
from app.storage.engine import Storage
from app.storage.tables import outbox

Channel = Literal["desk_mail", "customer_mail", "webhook"]
Event = Literal["created", "deleted"]
CHANNELS: Final[tuple[Channel, ...]] = ("desk_mail", "customer_mail", "webhook")
LEASE: Final = timedelta(minutes=2)
MAX_WAIT: Final = timedelta(hours=6)
# with 10 s at first, doubling up to six hours: three and a half days
MAX_ATTEMPTS: Final = 24
JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing to tell. `attempts` counts this one."""

    id: int
    quote_id: str
    reference: str
    channel: Channel
    event: Event
    idempotency_key: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    dead_at: datetime | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How much is waiting, and how much was given up."""

    waiting: int
    dead: int


class Outbox:
    """The outbox of one database."""

    def __init__(self, storage: Storage) -> None:
        """Remember the database."""
        self._storage = storage

    def lease(
        self, worker: str, channel: Channel, *, moment: datetime, limit: int
    ) -> tuple[Delivery, ...]:
        """Take up to `limit` due deliveries; nobody else gets them while the lease lasts."""
        due = (
            select(outbox.c.id)
            .where(
                outbox.c.channel == channel,
                outbox.c.next_attempt_at <= moment,
                or_(outbox.c.leased_until.is_(None), outbox.c.leased_until <= moment),
            )
            .order_by(outbox.c.next_attempt_at, outbox.c.id)
            .limit(limit)
        )
        with self._storage.read() as connection:
            if connection.execute(due.limit(1)).first() is None:
                return ()  # most of the time; no writer need wait for us
        with self._storage.write() as connection:
            ids = tuple(connection.execute(due.with_for_update(skip_locked=True)).scalars())
            if not ids:
                return ()
            taken = (
                update(outbox)
                .where(outbox.c.id.in_(ids))
                .values(
                    leased_by=worker,
                    leased_until=moment + LEASE,
                    attempts=outbox.c.attempts + 1,  # counted now, so that a crash counts too
                )
                .returning(*outbox.c)
            )
            return tuple(_delivery(row) for row in connection.execute(taken).mappings())

    def delivered(self, delivery: Delivery, worker: str, moment: datetime) -> None:
        """Note that something was told. The news of a deletion leaves no row."""
        mine = (outbox.c.id == delivery.id) & (outbox.c.leased_by == worker)
        with self._storage.write() as connection:
            if delivery.event == "deleted":
                connection.execute(delete(outbox).where(mine))
            else:
                connection.execute(
                    update(outbox)
                    .where(mine)
                    .values(
                        delivered_at=moment,
                        next_attempt_at=None,
                        leased_by=None,
                        leased_until=None,
                        last_error=None,
                    )
                )

    def failed(
        self,
        delivery: Delivery,
        worker: str,
        moment: datetime,
        *,
        code: str,
        retry_seconds: float,
    ) -> bool:
        """Note a failure and when to try again; True if this was the last try."""
        dead = delivery.attempts >= MAX_ATTEMPTS
        later = None if dead else moment + wait_after(delivery.attempts, retry_seconds)
        with self._storage.write() as connection:
            connection.execute(
                update(outbox)
                .where(outbox.c.id == delivery.id, outbox.c.leased_by == worker)
                .values(
                    next_attempt_at=later,
                    dead_at=moment if dead else None,
                    leased_by=None,
                    leased_until=None,
                    last_error=code[:60],
                )
            )
        return dead

    def revive(self, delivery_id: int, moment: datetime) -> bool:
        """Try a dead letter again from the start; False if it is none."""
        with self._storage.write() as connection:
            revived = (
                update(outbox)
                .where(outbox.c.id == delivery_id, outbox.c.dead_at.is_not(None))
                .values(dead_at=None, attempts=0, next_attempt_at=moment, last_error=None)
            )
            return connection.execute(revived).rowcount > 0

    def of_quote(self, quote_id: str) -> tuple[Delivery, ...]:
        """Return what was and is to be told of a quote."""
        return self._listed(outbox.c.quote_id == quote_id)

    def dead_letters(self) -> tuple[Delivery, ...]:
        """Return what was given up, newest first."""
        return self._listed(outbox.c.dead_at.is_not(None))

    def load(self) -> Load:
        """Count what waits and what was given up."""
        counted = select(
            func.count().filter(outbox.c.next_attempt_at.is_not(None)),
            func.count().filter(outbox.c.dead_at.is_not(None)),
        ).select_from(outbox)
        with self._storage.read() as connection:
            waiting, dead = connection.execute(counted).one()
        return Load(waiting, dead)

    def _listed(self, condition: Any) -> tuple[Delivery, ...]:  # noqa: ANN401 - SQLAlchemy's
        chosen = select(outbox).where(condition).order_by(desc(outbox.c.id))
        with self._storage.read() as connection:
            return tuple(_delivery(row) for row in connection.execute(chosen).mappings())


def announce(connection: Connection, quote: Quote, channels: Sequence[str]) -> None:
    """Note in the quote's own transaction that each channel must be told of it."""
    for channel in channels:
        _add(connection, quote.id, quote.reference, channel, "created", quote.created_at)


def withdraw(connection: Connection, quote_id: str, moment: datetime) -> None:
    """Drop what was to be told of a quote; tell a webhook that may know it of the deletion."""
    told = outbox.c.quote_id == quote_id
    news = select(outbox).where(told, outbox.c.channel == "webhook", outbox.c.event == "created")
    known = connection.execute(news).mappings().first()
    connection.execute(delete(outbox).where(told, outbox.c.event == "created"))
    if known is not None and known["attempts"]:
        # if it is being told just now, the news of the deletion must come after it
        due = max(moment, known["leased_until"] or moment)
        _add(connection, quote_id, known["reference"], "webhook", "deleted", due)


def wait_after(attempts: int, retry_seconds: float) -> timedelta:
    """Return the wait after a number of failures: doubled each time, a fifth more or less."""
    exact = min(retry_seconds * 2 ** (attempts - 1), MAX_WAIT.total_seconds())
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - so that not all come at once
    return timedelta(seconds=exact * spread)


def _add(
    connection: Connection,
    quote_id: str,
    reference: str,
    channel: str,
    event: Event,
    due: datetime,
) -> None:
    connection.execute(
        insert(outbox).values(
            quote_id=quote_id,
            reference=reference,
            channel=channel,
            event=event,
            idempotency_key=new_id(),
            created_at=due,
            attempts=0,
            next_attempt_at=due,
        )
    )


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(**{name: row[name] for name in Delivery.__slots__})
