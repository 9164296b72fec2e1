"""What a program sends: a query string, or a JSON object read as the same names and texts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from app.web.api_parameters import POST_ONLY
from app.wizard.answers import Notice, ParsedAnswers, Problem, parse_answers
from app.wizard.inputs import BY_NAME
from app.wizard.permalink import text_of

WHOLE_KINDS: Final = frozenset({"integer", "size", "length"})


class BodyError(ValueError):
    """A body that is no JSON object; `code` is `not_json` or `body_not_an_object`."""

    def __init__(self, code: str) -> None:
        """Keep the code for the message."""
        super().__init__(code)
        self.code = code


def read_query(pairs: Iterable[tuple[str, str]]) -> ParsedAnswers:
    """Read the names and texts of a query string; a config.json is too large for one."""
    parsed = parse_answers(pairs)
    misplaced = tuple(
        Problem("post_only", name, "") for name in POST_ONLY if parsed.raw.get(name, "").strip()
    )
    return with_problems(parsed, misplaced)


def read_body(body: bytes) -> ParsedAnswers:
    """Read a JSON object. Numbers and booleans may also be given as text. Raises BodyError."""
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BodyError("not_json") from None
    if not isinstance(given, dict):
        raise BodyError("body_not_an_object")
    problems = tuple(
        Problem("not_an_integer", name, text_of(value))
        for name, value in given.items()
        if isinstance(value, float) and not value.is_integer() and _is_whole(name)
    )
    wrong = {each.field for each in problems}
    pairs = [
        (name, _as_text(value))
        for name, value in given.items()
        if value is not None and name not in wrong
    ]
    return with_problems(parse_answers(pairs), problems)


def with_problems(parsed: ParsedAnswers, more: Iterable[Problem]) -> ParsedAnswers:
    """Add problems found elsewhere."""
    problems = (*parsed.problems, *more)
    return ParsedAnswers(parsed.answers, problems, parsed.notices, parsed.raw, parsed.data_version)


def strict_problems(notices: Iterable[Notice]) -> tuple[Problem, ...]:
    """Turn notices into problems: a program should not have a name ignored or guessed."""
    named = [each for each in notices if each.code in {"unknown_name", "renamed", "repeated"}]
    return tuple(
        Problem(
            "repeated" if each.code == "repeated" else "unknown_name",
            each.field,
            each.text,
            (("nearest", each.nearest),) if each.nearest else (),
        )
        for each in named
    )


def _is_whole(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].kind in WHOLE_KINDS


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | int | float):
        return text_of(value)
    return json.dumps(value, ensure_ascii=False)
