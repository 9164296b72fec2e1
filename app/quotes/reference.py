"""The number people read to each other on the phone: nine digits, the last one checks the rest."""

from __future__ import annotations

import re
import secrets
from typing import Final

DIGITS: Final = 9
_SEPARATORS: Final = re.compile(r"[\s\-./·]+")


def new_reference() -> str:
    """Draw a number such as 482-719-536. It identifies a request and opens nothing."""
    body = f"{secrets.randbelow(10 ** (DIGITS - 1)):0{DIGITS - 1}d}"
    return grouped(body + check_digit(body))


def read_reference(text: str) -> str | None:
    """Return the number somebody typed, however grouped; None if it is none or mistyped."""
    digits = _SEPARATORS.sub("", text)
    if not (digits.isascii() and digits.isdecimal() and len(digits) == DIGITS):
        return None
    return grouped(digits) if check_digit(digits[:-1]) == digits[-1] else None


def check_digit(body: str) -> str:
    """Return Luhn's digit: one wrong digit and most swapped neighbours are noticed.

    Source: ISO/IEC 7812-1, annex B.
    """
    total = 0
    for place, digit in enumerate(reversed(body)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - sum of its two digits
    return str(-total % 10)


def grouped(digits: str) -> str:
    """Write nine digits in threes."""
    return "-".join(digits[at : at + 3] for at in range(0, DIGITS, 3))
