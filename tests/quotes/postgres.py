"""A throw-away PostgreSQL on a loopback port, run by the user postgres where tests run as root."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

DEBIAN = Path("/usr/lib/postgresql")
INSTALL = "PostgreSQL is not installed: apt-get install postgresql"


def _program(name: str) -> str:
    debian = sorted(DEBIAN.glob(f"*/bin/{name}"))
    found = str(debian[-1]) if debian else shutil.which(name)
    if found is None:
        pytest.fail(INSTALL)
    return found


def _as_postgres() -> tuple[str, ...]:
    """Return how to become postgres: PostgreSQL refuses to be run by root."""
    return ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own words
        [*_as_postgres(), *command], capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        pytest.fail(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster, give the start of its addresses, throw it away."""
    folder = Path(tempfile.mkdtemp(prefix="sizing-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(folder / "data")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    with _swept_up(data, folder):
        _run(
            _program("initdb"), "-D", data, "-U", "sizing", "-A", "trust", "-E", "UTF8",
            "--no-sync", "--locale=C.UTF-8",
        )  # fmt: skip
        _run(_program("pg_ctl"), "-D", data, "-w", "-l", f"{data}.log", "-o", options, "start")
        yield f"postgresql://sizing@127.0.0.1:{port}/"


@contextmanager
def _swept_up(data: str, folder: Path) -> Iterator[None]:
    """Stop the cluster and remove its folder at the end, also if the tests are killed."""
    # it reads from a pipe that closes when this process ends, however it ends
    stop = " ".join((*_as_postgres(), _program("pg_ctl"), "-D", data, "-w", "-m", "immediate stop"))
    sweeper = subprocess.Popen(  # noqa: S603 - our own words
        ["/bin/sh", "-c", f"trap '' INT TERM; read _; {stop}; rm -rf {folder}"],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        sweeper.communicate()


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """Make a database, give its address, drop it."""
    with psycopg.connect(f"{server}postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server}{name}"
    with psycopg.connect(f"{server}postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
