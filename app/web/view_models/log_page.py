"""The log page as data: which start is shown, what it does, and the log beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.readings.findings import Finding, most_helpful
from app.readings.observation import LogReading, Observation
from app.readings.start_log import read_start_log
from app.web.read_start import ReadStart, read_start, requests_of
from app.web.view_models.annotated_log import AnnotatedLog, annotate
from app.web.view_models.memory_bar import MemoryBar, memory_bar_of
from app.wizard.ways_out import Way

# A longer paste is not written back into the page's own form.
MAX_KEPT: Final = 200_000
CHOSEN: Final = ("model", "gpu")
LISTED: Final = 12


@dataclass(frozen=True, slots=True)
class StartLine:
    """One start of the paste in the list of starts."""

    place: int
    start: Observation
    is_shown: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """Everything the page shows of a paste. `read` is None where nothing was recognised.

    helpful  the findings whose change helps most
    wrong    the findings that are more than a hint
    ways     what starts instead of a start that failed, with the requests that then fit
    bar      the card's memory, from what was measured; None where it is not known
    kept     the paste, "" where it is too long to be written back
    asks     whether something is to be chosen: what the log does not tell, or one of its starts
    """

    reading: LogReading
    log: AnnotatedLog
    read: ReadStart | None
    starts: tuple[StartLine, ...]
    helpful: tuple[Finding, ...]
    wrong: tuple[Finding, ...]
    ways: tuple[tuple[Way, int], ...]
    bar: MemoryBar | None
    kept: str
    asks: bool


def log_page(text: str, fields: dict[str, str], catalogue: Catalogue) -> LogPage:
    """Read a paste and work out one of its starts: the one asked for, else the last."""
    reading = read_start_log(text)
    place = _place(fields.get("start", ""), len(reading.starts))
    read = None
    chosen = {name: fields.get(name, "") for name in CHOSEN}
    if reading.starts:
        read = read_start(reading.starts[place], catalogue, chosen)
    findings = read.findings if read else ()
    first = max(0, len(reading.starts) - LISTED)
    return LogPage(
        reading=reading,
        log=annotate(text, reading.lines),
        read=read,
        starts=tuple(
            StartLine(number, start, number == place)
            for number, start in enumerate(reading.starts)
            if number >= first
        ),
        helpful=most_helpful(_of_one_service(findings, reading)),
        wrong=tuple(each for each in findings if each.severity != "info"),
        ways=tuple((way, requests_of(way)) for way in read.ways_out) if read else (),
        bar=_measured_bar(read),
        kept=text if len(text) <= MAX_KEPT else "",
        asks=read is not None
        and (bool(read.stated.gaps) or len(reading.starts) > 1 or any(chosen.values())),
    )


def _of_one_service(findings: tuple[Finding, ...], reading: LogReading) -> tuple[Finding, ...]:
    """Advise no larger share of a card to one of several services: they may share it."""
    if len({start.service for start in reading.starts}) == 1:
        return findings
    return tuple(each for each in findings if each.code != "utilization_low")


def _measured_bar(read: ReadStart | None) -> MemoryBar | None:
    """Return the card's memory where anything of it was measured."""
    if read is None or read.result is None or not read.calibration.inputs():
        return None
    return memory_bar_of(read.result)


def _place(asked: str, count: int) -> int:
    """Return which start is shown, from 0; anything that is none means the last."""
    if asked.isdecimal() and len(asked) < len("1000") and int(asked) < count:
        return int(asked)
    return count - 1
