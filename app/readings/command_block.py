"""Where commands stand in a pasted text: lines around a `vllm serve`, an image or a flag list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from app.readings.log_prefix import starts_record
from app.readings.log_text import LogText

COMMAND_HEADS: Final = (
    "vllm serve ", '"vllm", "serve"', "'vllm', 'serve'", "vllm.entrypoints.", "vllm-openai:",
    "LLM(", "--model", "--max-model-len", "--max_model_len", "--tensor-parallel-size",
    "--gpu-memory-utilization", "--kv-cache-dtype",
)  # fmt: skip

_MAX_LINES: Final = 100
_MAX_LENGTH: Final = 20_000
_LOOK_BEHIND: Final = 240
_LINE_LENGTH: Final = 4_000
_CONTINUED = re.compile(r"(?:^|\s)[\\`^]\s*$")
_FLAG_LINE = re.compile(r"[\s>|*\-\[\],\"']{0,60}(?:--?|[\u2013\u2014])[a-zA-Z][\w\-.]{1,60}")
_LIST_LINE = re.compile(r"[ >|]{0,60}(?:- |[\[\]\"'{}])|[ ]{1,60}[\w.\-]{1,60}:(?:\s|$)")
_LEVEL_BEFORE = re.compile(r"(?:INFO|WARNING|ERROR|DEBUG|Error)\b[^\n]{0,200}$")
_TYPOGRAPHY: Final = str.maketrans({
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u2010": "-", "\u2011": "-", "\u2212": "-",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that form one command, quotes made plain.

    begin       offset of the block in the text
    call_begin  for `LLM(…)`: where in `text` its arguments begin
    """

    text: str
    begin: int
    call_begin: int | None = None


def block_at(log: LogText, position: int, head: str, consumed: int) -> Block | None:
    """The command that the head at `position` belongs to; None where it is only talked about.

    `consumed` is how far the text was read before; no block reaches before it.
    """
    record = log.record_at(position)
    start = log.offsets[record]
    before = log.text[max(start, consumed, position - _LOOK_BEHIND) : position]
    if _LEVEL_BEFORE.search(before):
        return None
    if head == "LLM(":
        return _call(log, record, position + len(head), before)
    if before.endswith("usage: "):
        return None
    if (
        head.startswith("--")
        and _FLAG_LINE.fullmatch(log.text, start, position + len(head)) is None
    ):
        return None
    first = record
    while first > 0 and record - first < _MAX_LINES and _belongs_before(log, first, consumed):
        first -= 1
    last = record
    while last + 1 < len(log.offsets) and last - record < _MAX_LINES and _belongs_after(log, last):
        last += 1
    begin = max(log.offsets[first], consumed, position - _MAX_LENGTH)
    end = min(log.end_of(last), position + _MAX_LENGTH)
    return Block(_plain(log.text[begin:end]), begin)


def _call(log: LogText, record: int, arguments: int, before: str) -> Block | None:
    if before[-1:].isalnum() or before.endswith(("class ", "`", ".")):
        return None
    last = record
    while last + 1 < len(log.offsets) and last - record < _MAX_LINES:
        if starts_record(_line(log, last + 1)):
            break
        last += 1
    end = min(log.end_of(last), arguments + _MAX_LENGTH)
    return Block(_plain(log.text[arguments:end]), arguments, call_begin=0)


def _line(log: LogText, record: int) -> str:
    begin = log.offsets[record]
    return log.text[begin : min(log.end_of(record), begin + _LINE_LENGTH)]


def _belongs_before(log: LogText, first: int, consumed: int) -> bool:
    if log.offsets[first - 1] < consumed:
        return False
    line = _line(log, first - 1)
    return bool(_CONTINUED.search(line[-4:]) or _LIST_LINE.match(line)) and not starts_record(line)


def _belongs_after(log: LogText, last: int) -> bool:
    following = _line(log, last + 1)
    if not following.strip() or starts_record(following):
        return False
    continued = _CONTINUED.search(_line(log, last)[-4:])
    return bool(continued or _FLAG_LINE.match(following) or _LIST_LINE.match(following))


def _plain(text: str) -> str:
    """Undo what word processors do to quotes and hyphens, keeping every offset."""
    return text.translate(_TYPOGRAPHY)
