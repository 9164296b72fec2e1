"""Values as Python prints them: `{'a': 1}`, `Namespace(a=1)`, `a=1, b=Config(c='x')`.

A tolerant reader, because logs are cut, abridged with `...` and hold objects that are no literals
(`<CUDAGraphMode.FULL: 2>`, `torch.bfloat16`). It never raises and never evaluates anything. Each
character is read once, and nesting is bounded.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from app.readings.observation import ArgValue

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<object><[^<>]{0,300}>)
      | (?P<open>[\[({])
      | (?P<close>[\])}])
      | (?P<mark>[,:=])
      | (?P<word>[^\s,:=\[\](){}<>'"]+)
    )""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_FLOAT = re.compile(
    r"[+-]?[0-9]{1,18}\.[0-9]{0,20}(?:[eE][+-]?[0-9]{1,3})?|[+-]?[0-9]{1,18}[eE][+-]?[0-9]{1,3}"
)
_WORDS: Final[dict[str, ArgValue]] = {
    "None": None, "null": None, "True": True, "true": True, "False": False, "false": False,
}  # fmt: skip
_ABRIDGED: Final = frozenset({"...", "\u2026"})
_ENDS: Final = ",])}"
_MAX_DEPTH: Final = 16


class _Cut(Exception):  # noqa: N818 - the text ended, which is no fault
    """The text ended or nested too deeply; what was read so far stands."""


def read_entries(text: str, begin: int, end: int) -> tuple[dict[str, ArgValue], int]:
    """Read `key: value` or `key=value` entries from `begin` on.

    `begin` stands behind the opening bracket, or where the first key stands when there is none.
    Returns the entries and where reading stopped: behind the closing bracket, or where the text was
    no longer such a list.
    """
    reader = _Reader(text, begin, end)
    entries: dict[str, ArgValue] = {}
    with suppress(_Cut):
        reader.entries(entries, 0)
    return entries, reader.position


def scalar(text: str) -> ArgValue:
    """A bare word as Python means it: None, a truth value, a number, else the word itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


class _Reader:
    """Reads tokens with one token of look-ahead, so that each is matched once."""

    def __init__(self, text: str, begin: int, end: int) -> None:
        self.text = text
        self.end = end
        self.position = begin
        self.ahead = _TOKEN.match(text, begin, end)

    def next(self) -> re.Match[str]:
        """The next token. Raises _Cut where there is none."""
        token = self.ahead
        if token is None:
            raise _Cut
        self.position = token.end()
        self.ahead = _TOKEN.match(self.text, self.position, self.end)
        return token

    def is_next(self, marks: str) -> bool:
        """Whether the next token is one of these single characters."""
        token = self.ahead
        return token is not None and token[token.lastgroup or 0] in marks

    def entries(self, into: dict[str, ArgValue], depth: int) -> None:
        """Read entries up to the closing bracket; values without a key are left out."""
        if depth > _MAX_DEPTH:
            raise _Cut
        while True:
            token = self.next()
            if token.lastgroup == "close":
                return
            if token.lastgroup == "mark" or token["word"] in _ABRIDGED:
                continue
            if token.lastgroup == "open":
                self.entries({}, depth + 1)
                continue
            if self.is_next(":="):
                self.next()
                into[_text_of(token)] = self.value(depth)
            elif self.is_next("("):
                self.next()
                self.entries({}, depth + 1)
            elif not self.is_next(_ENDS):
                raise _Cut

    def value(self, depth: int) -> ArgValue:
        if self.is_next(_ENDS):
            return None
        token = self.next()
        if token.lastgroup == "open":
            return self.bracket(token["open"], depth)
        value: ArgValue = scalar(token["word"]) if token["word"] else _text_of(token)
        if token["word"] and self.is_next("("):
            self.next()
            value = {}
            self.entries(value, depth + 1)
        while self.ahead is not None and not self.is_next(_ENDS):
            # `device_config=cuda:0`, or an object printed in a way of its own.
            if self.next().lastgroup == "open":
                self.entries({}, depth + 1)
        return value

    def bracket(self, opener: str, depth: int) -> ArgValue:
        if depth > _MAX_DEPTH:
            raise _Cut
        if opener == "{":
            fields: dict[str, ArgValue] = {}
            self.entries(fields, depth + 1)
            return fields
        items: list[ArgValue] = []
        while True:
            if self.is_next(","):
                self.next()
            elif self.is_next("])}"):
                self.next()
                return items
            else:
                items.append(self.value(depth + 1))


def _text_of(token: re.Match[str]) -> str:
    string = token["string"]
    if string:
        return string[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")
    return token["word"] or token["object"] or ""
