"""The database opens safely, is migrated once, and is swept clean."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from app.quotes.repository import Repository
from app.storage.engine import Storage, with_driver
from app.storage.tables import metadata
from app.storage.unavailable import StorageUnavailableError
from tests.quotes.conftest import Draft


def test_migrations_lead_to_the_tables(storage: Storage) -> None:
    """A migrated database has exactly the tables, columns and indexes that the code names."""
    with storage.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_missing_column_would_be_noticed(sqlite: Storage) -> None:
    """The comparison reports a column that only the database has: its silence means something."""
    with sqlite.write() as connection:
        connection.execute(text("ALTER TABLE notes ADD COLUMN extra TEXT"))
    with sqlite.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata)


def test_many_may_open_a_new_database_at_once(database_url: str) -> None:
    """Six connections that start together migrate it once and all can read."""

    def opened(_: int) -> int:
        storage = Storage(database_url)
        with storage.read() as connection:
            count: int = connection.execute(text("SELECT count(*) FROM quotes")).scalar_one()
        storage.close()
        return count

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(opened, range(6))) == [0] * 6


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("secure_delete", 1), ("foreign_keys", 1)],
)
def test_sqlite_is_set_up_to_lose_nothing(sqlite: Storage, pragma: str, value: object) -> None:
    """Write-ahead log, full synchronisation, deletion that overwrites."""
    with sqlite.read() as connection:
        assert connection.execute(text(f"PRAGMA {pragma}")).scalar_one() == value


def test_a_failed_transaction_leaves_nothing(storage: Storage, draft: Draft) -> None:
    """What fails half-way is not there at all."""
    repository = Repository(storage)
    repository.save(draft(), ())
    failure = pytest.raises((StatementError, StorageUnavailableError))
    with failure, storage.write() as connection:
        connection.execute(text("DELETE FROM quotes"))
        connection.execute(text("SELECT * FROM nowhere"))
    assert repository.search().total == 1


def test_no_error_of_the_database_quotes_a_person(sqlite: Storage) -> None:
    """The message of a failed statement does not repeat the values it was given."""
    statement = text("INSERT INTO notes (quote_id, text) VALUES (:q, :t)")
    with pytest.raises(StatementError) as caught, sqlite.write() as connection:
        connection.execute(statement, {"q": "x", "t": "Ann Secret"})
    assert "Ann Secret" not in str(caught.value)


def test_postgresql_gets_the_shipped_driver() -> None:
    """An address as operators know it is read with psycopg 3."""
    assert with_driver("postgresql://u@h/d").drivername == "postgresql+psycopg"


def test_the_folder_is_made(tmp_path: Path) -> None:
    """A first start needs no folder."""
    storage = Storage(f"sqlite:///{tmp_path / 'var' / 'deep' / 'quotes.sqlite3'}")
    with storage.read() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    storage.close()
