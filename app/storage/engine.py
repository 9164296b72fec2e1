"""The connection to the database: opened at first use, migrated once, swept after deletions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import stamina
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import InterfaceError, OperationalError

from app.storage.unavailable import StorageUnavailableError

MIGRATIONS: Final = Path(__file__).parent / "migrations"
# any number that nothing else in the same PostgreSQL database locks
MIGRATION_LOCK: Final = 0x73697A65
BUSY_SECONDS: Final = 10
SQLITE_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # acknowledged means on the disk, power cut included
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is deleted is overwritten with zeros
    "PRAGMA temp_store = MEMORY",  # no copy of a quote in a temporary file
)
SWEEP_TABLES: Final = ("quotes", "notes", "outbox")
# execution option: the statement that begins a transaction in SQLite, "" for none
BEGIN: Final = "begin"


# its own hooks log the arguments of a call, which hold what somebody entered
stamina.instrumentation.set_on_retry_hooks([])


class Storage:
    """One database. Cheap to make: the first `read()` or `write()` connects and migrates."""

    def __init__(self, url: str) -> None:
        """Remember where the database is.

        Args:
            url: `sqlite:///…` or `postgresql://…`, in SQLAlchemy's spelling.
        """
        self._url = with_driver(url)
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        # SQLite has one writer, and others wait asleep: within a process they rather queue
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file of SQLite."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Connect for reading. Raises StorageUnavailableError."""
        with _unavailable(), self._opened().connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction that commits at the end. Raises StorageUnavailableError."""
        with self._turn, _unavailable(), self._opened().connect() as connection:
            # a writer that first reads would otherwise fail when another writes in between
            writer = connection.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
            with writer.begin():
                yield writer

    def sweep(self) -> None:
        """Remove what deleted rows leave behind in files: free pages and the write-ahead log."""
        with _unavailable(), self._opened().connect() as connection:
            if self.is_sqlite:
                alone = connection.execution_options(**{BEGIN: ""})
                alone.execute(text("VACUUM"))
                alone.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
            else:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                alone.execute(text(f"VACUUM {', '.join(SWEEP_TABLES)}"))

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None:
                engine = make_engine(self._url)
                _migrate_patiently(engine)
                self._engine = engine
            return self._engine


def with_driver(url: str) -> URL:
    """Return an address with the driver this project ships: psycopg 3 for PostgreSQL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def make_engine(url: URL) -> Engine:
    """Make an engine whose transactions are safe against kill and power cut."""
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url, pool_pre_ping=True, hide_parameters=True, connect_args={"connect_timeout": 5}
        )
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, hide_parameters=True, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def migrate(engine: Engine) -> None:
    """Bring a database to the newest tables. Several processes may start at once; one migrates."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.connect() as plain:
        connection = plain.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
        with connection.begin():
            if engine.dialect.name == "postgresql":
                lock = text("SELECT pg_advisory_xact_lock(:key)")
                connection.execute(lock, {"key": MIGRATION_LOCK})
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@stamina.retry(on=OperationalError, attempts=3, timeout=3, wait_initial=0.05)
def _migrate_patiently(engine: Engine) -> None:
    migrate(engine)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        # from None: the driver's message may quote a person
        raise StorageUnavailableError(type(error).__name__) from None


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own
    connection.isolation_level = None  # SQLAlchemy's begin event says when a transaction starts
    cursor = connection.cursor()
    for pragma in SQLITE_PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    if statement := connection.get_execution_options().get(BEGIN, "BEGIN"):
        connection.exec_driver_sql(statement)
