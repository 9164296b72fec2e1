"""After its time, and after deletion, nothing of a person is left: not in files, not in logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
import time_machine
from fastapi import FastAPI

from app.quotes import retention
from app.quotes.delivery.courier import Courier
from app.quotes.delivery.smtp import SmtpTransport
from app.quotes.outbox import CHANNELS, Outbox
from app.quotes.quote import Note
from app.quotes.repository import Repository
from app.settings import Settings
from app.storage.engine import Storage
from app.telemetry.logging import configure
from app.telemetry.metrics import Metrics
from tests.quotes.conftest import CREATED, Draft
from tests.quotes.letters import mails
from tests.quotes.peers import MailServer

DAYS = 180
PERSON = {
    "email": "zaphod.unmistakable@example.com",
    "name": "Zaphod Unmistakable",
    "phone": "+49 30 5550199",
    "company": "Unmistakable GmbH",
    "message": "unmistakable words " * 400,  # more than a page of the database
    "start_log": "host unmistakable-17\n" * 2_000,
}
TRACES = (b"nmistakable", b"5550199", b"zaphod", b"Zaphod")


def traces(folder: Path) -> dict[str, list[bytes]]:
    """Return which words about the person are in which file below a folder."""
    found = {}
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            if here := [trace for trace in TRACES if trace in content]:
                found[file.name] = here
    return found


@contextmanager
def _logged_to(file: Path) -> Iterator[None]:
    """Write every log line of the service and of its libraries to a file."""
    configure(production=True, level="debug")
    root = logging.getLogger()
    level = root.level
    with file.open("a", encoding="utf-8") as stream:
        handler = logging.StreamHandler(stream)
        handler.addFilter(lambda record: record.name != "mail.log")  # the receiver's, not ours
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(stream))
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            structlog.reset_defaults()  # else every later test writes to the closed file
            configure(production=False, level="error")


def _fill(repository: Repository, draft: Draft) -> str:
    """Store other people's quotes around the one of the person; return its id."""
    others = [draft(email=f"other{n}@example.org", created_at=CREATED) for n in range(5)]
    for quote in others[:3]:
        repository.save(quote, CHANNELS)
    person = repository.save(draft(**PERSON), CHANNELS).quote
    repository.add_note(person.id, Note(CREATED, "called Zaphod Unmistakable"))
    for quote in others[3:]:
        repository.save(quote, CHANNELS)
    return person.id


def test_after_its_time_a_request_is_gone_from_every_file(
    app: FastAPI, sqlite: Storage, draft: Draft, tmp_path: Path, mail_server: MailServer
) -> None:
    """Told, worked on, left alone for 180 days: no file of database or log holds the person."""
    repository, outbox = Repository(sqlite), Outbox(sqlite)
    settings = Settings(smtp_host="127.0.0.1", smtp_port=mail_server.port, smtp_transport="plain")
    transport = SmtpTransport(settings)
    senders = {
        "desk_mail": mails("desk", app.state.renderer, transport),
        "customer_mail": mails("customer", app.state.renderer, transport),
    }
    courier = Courier(
        repository, outbox, senders, retry_seconds=1, retention_days=DAYS, metrics=Metrics()
    )
    with _logged_to(tmp_path / "service.log"):
        _fill(repository, draft)
        mail_server.mood = "refuse"
        asyncio.run(courier.deliver_due("desk_mail", CREATED))
        mail_server.mood = "well"
        asyncio.run(courier.deliver_due("customer_mail", CREATED))
        assert any(PERSON["email"] in mail["To"] for mail in mail_server.mails)
        assert set(traces(tmp_path)) & {"quotes.sqlite3", "quotes.sqlite3-wal"}
        almost = CREATED + timedelta(days=DAYS)
        assert retention.expire(repository, DAYS, almost) == 0
        with time_machine.travel(almost + timedelta(seconds=1), tick=False):
            asyncio.run(courier._expire())
    assert repository.search().total == 0
    assert (tmp_path / "service.log").stat().st_size > 0, "the log was written"
    assert traces(tmp_path) == {}


def test_a_deleted_request_is_gone_from_every_file(
    sqlite: Storage, draft: Draft, tmp_path: Path
) -> None:
    """Deleting one request among others leaves them, and nothing of it in any file."""
    repository = Repository(sqlite)
    person = _fill(repository, draft)
    assert traces(tmp_path) != {}
    repository.forget((person,), CREATED)
    assert repository.search().total == 5
    assert traces(tmp_path) == {}


def test_only_what_is_old_is_deleted(storage: Storage, draft: Draft) -> None:
    """Day 180 is kept, the moment after is not; more than one batch goes in one run."""
    repository = Repository(storage)
    kept = repository.save(draft(created_at=CREATED), ()).quote
    for number in range(retention.BATCH + 2):
        repository.save(draft(created_at=CREATED - timedelta(seconds=1 + number)), ())
    moment = CREATED + timedelta(days=DAYS)
    assert retention.expire(repository, DAYS, moment) == retention.BATCH + 2
    assert [quote.id for quote in repository.search().quotes] == [kept.id]


def test_the_courier_forgets_on_its_start(sqlite: Storage, draft: Draft) -> None:
    """A service that starts after a long pause deletes what became too old meanwhile."""
    repository = Repository(sqlite)
    repository.save(draft(), ())
    courier = Courier(
        repository, Outbox(sqlite), {}, retry_seconds=1, retention_days=1, metrics=Metrics()
    )

    async def start() -> None:
        task = asyncio.create_task(courier.run())
        async with asyncio.timeout(20):
            while await asyncio.to_thread(lambda: repository.search().total):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        courier.stop()
        await task

    with time_machine.travel(CREATED + timedelta(days=2)):
        asyncio.run(start())


def test_the_search_for_traces_finds_them(tmp_path: Path) -> None:
    """The search reports a word in any file, so its silence means something."""
    (tmp_path / "x").write_bytes(b"\0\1 Zaphod Unmistakable \0")
    assert traces(tmp_path) == {"x": [b"nmistakable", b"Zaphod"]}


@pytest.mark.slow
def test_a_swept_database_is_still_whole(sqlite: Storage, draft: Draft) -> None:
    """After many deletions and sweeps the quotes that stay read back unchanged."""
    repository = Repository(sqlite)
    kept = [repository.save(draft(), ()).quote for _ in range(5)]
    for _ in range(10):
        gone = [repository.save(draft(message="x" * 4_000), ()).quote.id for _ in range(5)]
        repository.forget(gone, CREATED)
    assert [repository.get(each.id) for each in kept] == kept
