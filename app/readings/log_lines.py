"""All kinds of lines, and finding them in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.readings.cache_lines import CACHE_LINES, RUNNING_LINES
from app.readings.failures import FAILURE_LINES
from app.readings.graph_lines import GRAPH_LINES, SUMMARY_LINES
from app.readings.identity_lines import IDENTITY_LINES
from app.readings.line_kind import DEVICE, LineForm, LineKind, values_of
from app.readings.log_prefix import service_of, starts_record
from app.readings.log_text import LogText
from app.readings.memory_lines import PROFILE_LINES, WEIGHT_LINES
from app.readings.observation import Value

LINE_KINDS: Final[tuple[LineKind, ...]] = (
    *FAILURE_LINES,
    *IDENTITY_LINES,
    *WEIGHT_LINES,
    *PROFILE_LINES,
    *GRAPH_LINES,
    *SUMMARY_LINES,
    *CACHE_LINES,
    *RUNNING_LINES,
)

_LEAD_DISTANCE: Final = 160
_WRAPPED_RECORDS: Final = 6
_WRAPPED_LENGTH: Final = 1200
_ALONE_LENGTH: Final = 200
_FULL_STOP: Final = 1
_DEVICE_DISTANCE: Final = 12
_DEVICE = re.compile(r"(?:[A-Z]{3,4}|[a-z]{3,4})(?: \+ host)?$")
_QUOTE_MARKS: Final = "> #*-"


class Match(NamedTuple):
    """A recognised line: where it stands, its kind, the wording that fitted, and its values."""

    begin: int
    end: int
    kind: LineKind
    form: LineForm
    values: dict[str, Value]


def _kinds_by_head() -> dict[str, tuple[LineKind, ...]]:
    table: dict[str, tuple[LineKind, ...]] = {}
    for kind in LINE_KINDS:
        for head in kind.heads:
            table[head] = (*table.get(head, ()), kind)
    return table


_KINDS_BY_HEAD: Final = _kinds_by_head()
LINE_HEADS: Final = tuple(_KINDS_BY_HEAD)


@dataclass(slots=True)
class WrapBudget:
    """How many more lines may be tried together with the lines that follow them.

    A person's paste needs few; without the bound a text made of broken lines would cost several
    times the work of one made of whole lines.
    """

    left: int = 2_000


def match_line(log: LogText, position: int, head: str, budget: WrapBudget) -> Match | None:
    """Read the line of which `head` stands at `position`; None where no wording fits.

    What the end of a line cuts short is tried again with the lines that continue it, as mail and
    chat programs break them.
    """
    record = log.record_at(position)
    end = log.end_of(record)
    match = _match_record(log, record, position, head)
    if match is not None and match.form is match.kind.forms[0] and end - match.end > _FULL_STOP:
        return match
    wrapped = _match_wrapped(log, record, position, head, budget)
    if wrapped is not None and (match is None or len(wrapped.values) > len(match.values)):
        return wrapped
    return match


def _match_record(log: LogText, record: int, position: int, head: str) -> Match | None:
    end = log.end_of(record)
    for kind in _KINDS_BY_HEAD[head]:
        begin = _begin(log, record, position, kind)
        if begin is None:
            continue
        for form in kind.forms:
            match = form.pattern.match(log.text, begin, end)
            if match:
                return Match(begin, match.end(), kind, form, values_of(form, match))
    return None


def _begin(log: LogText, record: int, position: int, kind: LineKind) -> int | None:
    """Where the wording begins; None where what must stand before the head does not."""
    start = log.offsets[record]
    if kind.alone:
        line = log.text[start : min(log.end_of(record), start + _ALONE_LENGTH)]
        message = line.rpartition("|")[2].strip(_QUOTE_MARKS)
        return position if message in kind.heads else None
    if not kind.lead:
        return position
    if kind.lead == DEVICE:
        device = _DEVICE.search(log.text, max(start, position - _DEVICE_DISTANCE), position)
        return device.start() if device else None
    begin = log.text.rfind(
        kind.lead, max(start, position - _LEAD_DISTANCE), position + len(kind.lead)
    )
    return begin if begin >= 0 else None


def _match_wrapped(
    log: LogText, record: int, position: int, head: str, budget: WrapBudget
) -> Match | None:
    end = log.end_of(record)
    if end - position > _WRAPPED_LENGTH or budget.left <= 0:
        return None
    rest, last = _continuations(log, record)
    if last == record:
        return None
    budget.left -= 1
    for kind in _KINDS_BY_HEAD[head]:
        begin = _begin(log, record, position, kind)
        if begin is None:
            continue
        joined = log.text[begin:end] + rest
        for form in kind.forms:
            match = form.pattern.match(joined)
            if match:
                return Match(begin, log.end_of(last), kind, form, values_of(form, match))
    return None


def _continuations(log: LogText, record: int) -> tuple[str, int]:
    """The lines that continue a record, each behind a blank, and the last of them."""
    rest = ""
    last = record
    while last + 1 < len(log.offsets) and last - record < _WRAPPED_RECORDS:
        following = log.text[log.offsets[last + 1] : log.end_of(last + 1)]
        if not following.strip() or len(following) > _WRAPPED_LENGTH or starts_record(following):
            break
        last += 1
        rest = f"{rest} {_continuation(following)}"
    return rest, last


def _continuation(line: str) -> str:
    if service_of(line):
        line = line.partition("|")[2]
    return line.strip(_QUOTE_MARKS)
