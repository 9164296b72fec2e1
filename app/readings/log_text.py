"""A pasted text as records: decoded, numbered lines, colours removed, hard wraps joined."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from app.readings.log_prefix import starts_record

_ESCAPES: Final = (
    "\x1b",
    "\x9b",
    "#033[",
    "\\x1b[",
    "\\u001b[",
    "\\033[",
    "\\e[",
    "\u241b[",
    "^[[",
    "ESC[",
)
_COLOUR = re.compile(
    r"(?:(?:\x1b|#033|\\x1b|\\u001b|\\033|\\e|\u241b|\^\[|ESC)\[|\x9b)[0-?]{0,20}[ -/]{0,4}[@-~]"
)
_HYPERLINK = re.compile(r"\x1b\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)?")
_BARE_COLOUR = re.compile(r"\[[0-9]{1,2}(?:;[0-9]{1,3}){0,4}m")
_SPACES: Final = ("\u00a0", "\u202f", "\u2009", "\u2007", "\u3000", "\t")
_ENTITIES: Final = (
    ("&quot;", '"'), ("&#34;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&apos;", "'"),
    ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&amp;", "&"),
)  # fmt: skip
_INVISIBLE: Final = ("\x00", "\ufeff", "\u200b", "\u200e", "\u200f", "\u2060")

_NARROWEST_WRAP: Final = 60
_WIDEST_WRAP: Final = 400
_FEWEST_BROKEN: Final = 3
_SAMPLE_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class LogText:
    """The cleaned text, one record a line, and where records and pasted lines begin in it.

    offsets       start of each record in `text`, ascending
    line_offsets  start of each pasted line in `text`, ascending; the same list unless lines were
                  joined to records
    """

    text: str
    offsets: list[int]
    line_offsets: list[int]

    def record_at(self, offset: int) -> int:
        """Index of the record that holds the character at `offset`."""
        return bisect_right(self.offsets, offset) - 1

    def line_at(self, offset: int) -> int:
        """Number, from 1, of the pasted line that holds the character at `offset`."""
        return bisect_right(self.line_offsets, offset)

    def end_of(self, record: int) -> int:
        """Offset just behind the last character of a record, its line break not counted."""
        if record + 1 < len(self.offsets):
            return self.offsets[record + 1] - 1
        return len(self.text)


def decode(data: bytes) -> str:
    """Decode a pasted or dropped file: UTF-8, or UTF-16 as Windows PowerShell's `>` writes it.

    Bytes that fit neither become U+FFFD; nothing is refused.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    sample = data[:_SAMPLE_BYTES]
    if sample and sample.count(0) * 3 > len(sample):
        encoding = "utf-16-be" if sample[0] == 0 else "utf-16-le"
        return data.decode(encoding, errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def split_lines(text: str) -> list[str]:
    """Split where a browser's text field would: LF, CR LF, and a lone CR (progress bars).

    The one rule for line numbers: `ReadLine.line` counts these lines from 1.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def read_text(text: str) -> LogText:
    """Clean a text and cut it into records; no line is lost and numbers stay those of the paste."""
    lines = split_lines(_clean(text))
    width = max(map(len, lines))
    if _NARROWEST_WRAP <= width <= _WIDEST_WRAP:
        cut, broken = _cut_lines(lines, width), _broken_lines(lines, width)
        if len(cut) * 5 >= len(broken) * 4:
            return _joined(lines, cut, "")
        return _joined(lines, broken, " ")
    return _joined(lines, set(), "")


def _clean(text: str) -> str:
    """Remove what copying adds, keeping every line break."""
    for character in _INVISIBLE:
        text = text.replace(character, "")
    if any(escape in text for escape in _ESCAPES):
        text = _COLOUR.sub("", _HYPERLINK.sub("", text))
    if "[0m" in text or "[0;" in text:
        # Some viewers drop the escape character and leave the rest of the colour code.
        text = _BARE_COLOUR.sub("", text)
    for space in _SPACES:
        text = text.replace(space, " ")
    if "\\_" in text:
        # Markdown editors escape underscores and hashes.
        text = text.replace("\\_", "_").replace("\\#", "#")
    if "&" in text:
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    return text


def _joined(lines: list[str], continued: set[int], separator: str) -> LogText:
    """Join every line whose index is in `continued` to the line before it."""
    parts: list[str] = []
    offsets: list[int] = []
    line_offsets: list[int] = []
    position = 0
    for index, line in enumerate(lines):
        if index:
            parts.append(separator if index in continued else "\n")
            position += len(parts[-1])
        if index not in continued:
            offsets.append(position)
        line_offsets.append(position)
        parts.append(line)
        position += len(line)
    return LogText("".join(parts), offsets, line_offsets)


def _cut_lines(lines: list[str], width: int) -> set[int]:
    """Lines that continue a line of exactly the greatest length; empty where this is chance.

    A terminal of fixed width leaves several full lines, and what follows them does not begin like a
    record; some records may have that length by themselves.
    """
    full = [index for index, line in enumerate(lines[:-1]) if len(line) == width]
    continued = {index + 1 for index in full if not starts_record(lines[index + 1])}
    if len(continued) < _FEWEST_BROKEN or len(continued) * 3 < len(full):
        return set()
    return continued


def _broken_lines(lines: list[str], width: int) -> set[int]:
    """Lines whose first word had no place on the line before; empty where this is chance."""
    others = [
        index
        for index in range(1, len(lines))
        if lines[index].strip() and not starts_record(lines[index])
    ]
    continued = {
        index
        for index in others
        if len(lines[index - 1]) * 2 >= width
        and len(lines[index - 1]) + 1 + len(lines[index].split(None, 1)[0]) > width
    }
    if len(continued) < _FEWEST_BROKEN or len(continued) * 2 < len(others):
        return set()
    return continued
