"""Databases, receivers and quotes for the tests of this room."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.quotes.outbox import Outbox
from app.quotes.quote import Quote, Sizing
from app.quotes.repository import Repository
from app.quotes.request import Contact
from app.quotes.token import new_id
from app.storage.engine import Storage
from tests.quotes import postgres
from tests.quotes.drafts import llama_on_one_card
from tests.quotes.peers import MailServer, Receiver

CREATED = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
_numbers = itertools.count()

Draft = Callable[..., Quote]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL for the session."""
    with postgres.cluster() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of a new database, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'quotes.sqlite3'}"
        return
    server = request.getfixturevalue("postgres_server")
    with postgres.database(server, f"test_{next(_numbers)}") as url:
        yield url


@pytest.fixture
def storage(database_url: str) -> Iterator[Storage]:
    """Return a new database."""
    storage = Storage(database_url)
    yield storage
    storage.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Storage]:
    """Return a new SQLite database, where the kind makes no difference."""
    storage = Storage(f"sqlite:///{tmp_path / 'quotes.sqlite3'}")
    yield storage
    storage.close()


@pytest.fixture
def repository(storage: Storage) -> Repository:
    """Return the quotes of a new database."""
    return Repository(storage)


@pytest.fixture
def outbox(storage: Storage) -> Outbox:
    """Return the outbox of the same database."""
    return Outbox(storage)


@pytest.fixture(scope="session")
def sizing(app: FastAPI) -> Sizing:
    """Return the frozen figures of Llama 3.3 70B on one card."""
    return llama_on_one_card(app)


@pytest.fixture
def draft(sizing: Sizing) -> Draft:
    """Return a function that makes quotes; a contact's fields may be named."""

    def make(*, language: str = "en", created_at: datetime = CREATED, **contact: Any) -> Quote:  # noqa: ANN401
        person = Contact(**{"email": "ann@example.com", "name": "Ann Example", **contact})
        return Quote(
            id=new_id(),
            reference="",
            form_id=new_id(),
            created_at=created_at,
            language=language,  # type: ignore[arg-type]
            status="new",
            contact=person,
            sizing=sizing,
            notice_version="test",
        )

    return make


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    """Return a mail server that listens."""
    server = MailServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return an HTTP receiver that listens."""
    receiver = Receiver()
    receiver.start()
    yield receiver
    receiver.stop()
