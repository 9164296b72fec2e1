"""Patterns that quantisation configs select modules with, matched in linear time.

Lists come from files of strangers, so regular expressions run on an automaton of our own: no
backtracking, whatever the pattern. What the automaton does not know is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import ascii_letters, digits

from app.catalog.hf_fields import ConfigError, shown

LARGEST_PATTERN = 300
DEEPEST_GROUP = 20
_SPECIAL = frozenset("\\^$.|?*+()[]{}")
_ANCHORS = {"^": "start", "$": "end"}
_CLASSES = {"d": digits, "w": ascii_letters + digits + "_"}


@dataclass(slots=True)
class _State:
    """One state: on a character of `accepts` (None: any) to `target`; `free` moves cost nothing.

    Of a state with `only_at` "start" or "end", they are open there alone.
    """

    accepts: frozenset[str] | None = frozenset()
    target: int = -1
    free: list[int] = field(default_factory=list)
    only_at: str = ""


class NamePattern:
    r"""A regular expression as `re.match` would apply it: anchored at the start only.

    Knows literals, `.`, `\.`, `\d`, `\w`, `[…]`, `(…|…)`, `(?:…)`, `*`, `+`, `?` (also the
    lazy ones), `^`, `$`.
    Raises ConfigError for anything else.
    """

    def __init__(self, pattern: str) -> None:
        """Build the automaton."""
        if len(pattern) > LARGEST_PATTERN or not pattern.isascii():
            raise _unknown(pattern)
        self._text, self._position, self._depth = pattern, 0, 0
        self._states: list[_State] = []
        start, end = self._alternatives()
        if self._position != len(pattern):
            raise _unknown(pattern)
        self._accept = end
        self._start = self._closure({start}, at="start")
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """True when the pattern matches from the start of `name`."""
        current = self._start
        for character in name:
            if self._accept in current:
                return True
            key = (current, character)
            following = self._moves.get(key)
            if following is None:
                following = self._moves[key] = self._step(current, character)
            if not following:
                return False
            current = following
        return self._accept in self._closure(current, at="end")

    def _step(self, current: frozenset[int], character: str) -> frozenset[int]:
        reached = {
            self._states[number].target
            for number in current
            if self._states[number].target >= 0 and _takes(self._states[number].accepts, character)
        }
        return self._closure(reached)

    def _closure(self, numbers: set[int] | frozenset[int], *, at: str = "") -> frozenset[int]:
        reached, waiting = set(numbers), list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            if state.only_at not in {"", at}:
                continue
            for number in state.free:
                if number not in reached:
                    reached.add(number)
                    waiting.append(number)
        return frozenset(reached)

    def _new(self, accepts: frozenset[str] | None = frozenset(), *, only_at: str = "") -> int:
        self._states.append(_State(accepts, only_at=only_at))
        return len(self._states) - 1

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _alternatives(self) -> tuple[int, int]:
        start, end = self._new(), self._new()
        while True:
            first, last = self._sequence()
            self._states[start].free.append(first)
            self._states[last].free.append(end)
            if self._peek() != "|":
                return start, end
            self._position += 1

    def _sequence(self) -> tuple[int, int]:
        start = end = self._new()
        while self._peek() not in {"", "|", ")"}:
            first, last = self._repeated()
            self._states[end].free.append(first)
            end = last
        return start, end

    def _repeated(self) -> tuple[int, int]:
        first, last = self._atom()
        sign = self._repeat_sign()
        if not sign:
            return first, last
        if self._repeat_sign() not in {"", "?"} or self._repeat_sign():
            raise _unknown(self._text)
        start, end = self._new(), self._new()
        self._states[start].free.append(first)
        self._states[last].free.append(end)
        if sign != "+":
            self._states[start].free.append(end)
        if sign != "?":
            self._states[last].free.append(first)
        return start, end

    def _repeat_sign(self) -> str:
        """Take the sign of a repetition; after one, `?` (as few as can be) changes no match."""
        sign = self._peek()
        if sign not in {"*", "+", "?"}:
            return ""
        self._position += 1
        return sign

    def _atom(self) -> tuple[int, int]:
        character = self._peek()
        self._position += 1
        if character == "(":
            return self._group()
        if character in _ANCHORS:
            first, last = self._new(only_at=_ANCHORS[character]), self._new()
            self._states[first].free.append(last)
            return first, last
        if character == ".":
            return self._single(None)
        if character == "[":
            return self._single(self._set())
        if character == "\\":
            return self._single(self._escaped())
        if character in _SPECIAL:
            raise _unknown(self._text)
        return self._single(frozenset(character))

    def _group(self) -> tuple[int, int]:
        if self._text.startswith("?:", self._position):
            self._position += 2
        self._depth += 1
        if self._depth > DEEPEST_GROUP:
            raise _unknown(self._text)
        inner = self._alternatives()
        if self._peek() != ")":
            raise _unknown(self._text)
        self._position += 1
        self._depth -= 1
        return inner

    def _escaped(self) -> frozenset[str]:
        character = self._peek()
        self._position += 1
        if not character or (character.isalnum() and character not in _CLASSES):
            raise _unknown(self._text)
        return frozenset(_CLASSES.get(character, character))

    def _set(self) -> frozenset[str]:
        end = self._text.find("]", self._position)
        body = self._text[self._position : end]
        if end < 0 or not body or "\\" in body or body.startswith("^"):
            raise _unknown(self._text)
        self._position = end + 1
        characters: set[str] = set()
        index = 0
        while index < len(body):
            low = body[index]
            if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
                characters |= {chr(code) for code in range(ord(low), ord(body[index + 2]) + 1)}
                index += 3
            else:
                characters.add(low)
                index += 1
        return frozenset(characters)

    def _single(self, accepts: frozenset[str] | None) -> tuple[int, int]:
        first, last = self._new(accepts), self._new()
        self._states[first].target = last
        return first, last


def _takes(accepts: frozenset[str] | None, character: str) -> bool:
    return accepts is None or character in accepts


def _unknown(pattern: str) -> ConfigError:
    return ConfigError("quantization_pattern_unknown", (("pattern", shown(pattern)),))
