"""Measure answers per second and their latency on this machine, beside a calibration address.

    python -m app.tools.bench [PATH …]     PATH as the browser sends it, htmx asks for its block

Absolute figures belong to one machine and moment. Sizings are compared with a calibration loop of
the same process, a path with /healthz of the same run; the run fails where a ratio is too large.
"""

import asyncio
import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from app.tools.sizing_speed import SizingSpeed, measure_sizings

HOST: Final = "127.0.0.1"
CALIBRATION: Final = "/healthz"
# {number} differs in every request: no answer was kept. The first matrix is written anew
# from figures that are known, the second sizes every card in every layout anew.
MATRIX: Final = "/en/matrix?model=llama-3.3-70b&max_model_len=8192&from={number}"
NEW_MATRIX: Final = "/en/matrix?model=llama-3.3-70b&max_model_len={number}"
DEFAULT_PATHS: Final = ("/de/", "/en/help", MATRIX, NEW_MATRIX)
NUMBERS: Final = range(8192, 131_072, 16)
# One calibration loop takes about 28 ms where the goals are: 2 s for the catalogue, 80 us for one.
MOST_CALIBRATIONS_FOR_THE_CATALOGUE: Final = 72.0
MOST_CALIBRATIONS_FOR_ONE_SIZING: Final = 0.0029
MOST_HEALTHZ_FOR_THE_MATRIX: Final = 60.0
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
    numbers = itertools.cycle(NUMBERS)
    last = (0, 0)

    async def ask() -> None:
        nonlocal last
        reader, writer = await asyncio.open_connection(HOST, port)
        until = time.perf_counter() + seconds
        while (started := time.perf_counter()) < until and last[0] < ERROR_STATUS:
            last = await _answer(reader, writer, path.replace("{number}", str(next(numbers))))
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


def report_sizings(found: SizingSpeed) -> list[str]:
    """Print how fast sizings are; return what is too slow."""
    print(
        f"{found.sizings} sizings in {found.catalogue_seconds:.2f} s "
        f"({found.catalogue_of_calibration:.1f} calibration loops), one in "
        f"{1e6 * found.one_seconds:.0f} us ({found.one_of_calibration:.4f}); one loop "
        f"{1000 * found.calibration_seconds:.1f} ms"
    )
    slow = []
    if found.catalogue_of_calibration > MOST_CALIBRATIONS_FOR_THE_CATALOGUE:
        slow.append(f"the catalogue takes more than {MOST_CALIBRATIONS_FOR_THE_CATALOGUE} loops")
    if found.one_of_calibration > MOST_CALIBRATIONS_FOR_ONE_SIZING:
        slow.append(f"one sizing takes more than {MOST_CALIBRATIONS_FOR_ONE_SIZING} loops")
    return slow


def report_paths(paths: Iterable[str]) -> list[str]:
    """Measure the calibration address and each path, print one line each; return what is slow."""
    print(f"{'req/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'of cal.':>8} {'bytes':>8}  status path")
    calibration, slow = 0.0, []
    with server() as port:
        for path in (CALIBRATION, *paths):
            found = asyncio.run(measure(port, path))
            calibration = calibration or found.per_second
            print(
                f"{found.per_second:8.0f} {found.median_ms:8.1f} {found.p99_ms:8.1f} "
                f"{found.per_second / calibration:8.2f} {found.body_bytes:8d}  "
                f"{found.status:6d} {found.path}"
            )
            times = calibration / found.per_second
            if path == MATRIX and times > MOST_HEALTHZ_FOR_THE_MATRIX:
                slow.append(f"the matrix takes {times:.0f} times as long as {CALIBRATION}")
    return slow


def main(paths: list[str]) -> None:
    """Measure sizings and addresses; leave with a message where something is too slow."""
    slow = [*report_sizings(measure_sizings()), *report_paths(paths or DEFAULT_PATHS)]
    if slow:
        raise SystemExit("Too slow: " + "; ".join(slow))


if __name__ == "__main__":
    main(sys.argv[1:])
