"""Measure answers per second and their latency on this machine, beside a calibration address.

    python -m app.tools.bench [PATH …]     PATH as the browser sends it, htmx asks for its block

Absolute figures belong to one machine and moment; compare a path with /healthz of the same run.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HOST: Final = "127.0.0.1"
CALIBRATION: Final = "/healthz"
DEFAULT_PATHS: Final = ("/de/", "/en/help")
CONNECTIONS: Final = 16
SECONDS: Final = 5.0
START_SECONDS: Final = 15.0
ERROR_STATUS: Final = 400


@dataclass(frozen=True)
class Measurement:
    """What one address did under load."""

    path: str
    per_second: float
    median_ms: float
    p99_ms: float
    status: int
    body_bytes: int


@contextlib.contextmanager
def server() -> Iterator[int]:
    """Run one worker in production settings on a free port; the value is the port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    command = [
        sys.executable, "-m", "uvicorn", "--factory", "app.main:create_app", "--port", str(port),
        "--log-level", "warning", "--no-access-log",
    ]  # fmt: skip
    settings = {"SIZING_ENVIRONMENT": "production", "SIZING_LOG_LEVEL": "error"}
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
            return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


async def measure(port: int, path: str, seconds: float = SECONDS) -> Measurement:
    """Ask for one path over 16 kept connections until the time is over or an error comes."""
    times: list[float] = []
    last = (0, 0)

    async def ask() -> None:
        nonlocal last
        reader, writer = await asyncio.open_connection(HOST, port)
        until = time.perf_counter() + seconds
        while (started := time.perf_counter()) < until and last[0] < ERROR_STATUS:
            last = await _answer(reader, writer, path)
            times.append(time.perf_counter() - started)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    milliseconds = sorted(1000 * value for value in times)
    return Measurement(
        path=path,
        per_second=len(times) / seconds,
        median_ms=statistics.median(milliseconds),
        p99_ms=milliseconds[int(len(milliseconds) * 0.99)],
        status=last[0],
        body_bytes=last[1],
    )


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str
) -> tuple[int, int]:
    """Send one request; return status and body length."""
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nHX-Request: true\r\n"
        "HX-Request-Type: partial\r\n\r\n".encode()
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
    await reader.readexactly(length)
    return int(head.split(" ", 2)[1]), length


def main(paths: list[str]) -> None:
    """Measure the calibration address and each path, print one line each."""
    print(f"{'req/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'of cal.':>8} {'bytes':>8}  status path")
    calibration = 0.0
    with server() as port:
        for path in (CALIBRATION, *(paths or DEFAULT_PATHS)):
            found = asyncio.run(measure(port, path))
            calibration = calibration or found.per_second
            print(
                f"{found.per_second:8.0f} {found.median_ms:8.1f} {found.p99_ms:8.1f} "
                f"{found.per_second / calibration:8.2f} {found.body_bytes:8d}  "
                f"{found.status:6d} {found.path}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
