"""How numbers, amounts and dates look in each language; the only place that knows."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any, Final

from babel.core import Locale
from babel.dates import format_date
from babel.numbers import NumberPattern, parse_pattern

from app.web.locale import Language

NARROW_NO_BREAK_SPACE: Final = "\u202f"
MINUS: Final = "\u2212"
GIB_BYTES: Final = 1 << 30
KIB_BYTES: Final = 1 << 10
_LOCALES: Final[dict[Language, Locale]] = {"de": Locale("de"), "en": Locale("en")}


@cache
def _pattern(language: Language, decimals: int) -> tuple[NumberPattern, Locale]:
    places = f".{'0' * decimals}" if decimals else ""
    return parse_pattern(f"#,##0{places}"), _LOCALES[language]


@lru_cache(maxsize=8192)
def number(language: Language, value: float, decimals: int = 0) -> str:
    """Group by thousands: 643.232 in German, 643,232 in English; negative with a minus sign."""
    pattern, locale = _pattern(language, decimals)
    return str(pattern.apply(value, locale)).replace("-", MINUS)


def with_unit(language: Language, value: float, unit: str, decimals: int = 0) -> str:
    """Join a number and its unit with a narrow no-break space."""
    return f"{number(language, value, decimals)}{NARROW_NO_BREAK_SPACE}{unit}"


def gib(language: Language, value_bytes: float, decimals: int = 1) -> str:
    """Show bytes as GiB: 67,7 GiB in German, 67.7 GiB in English."""
    return with_unit(language, value_bytes / GIB_BYTES, "GiB", decimals)


def kib(language: Language, value_bytes: float, decimals: int = 0) -> str:
    """Show bytes as KiB, for bytes per token."""
    return with_unit(language, value_bytes / KIB_BYTES, "KiB", decimals)


def percent(language: Language, share: float, decimals: int = 0) -> str:
    """Show a share of 1 as a percentage: 92 % in German, 92% in English."""
    sign = f"{NARROW_NO_BREAK_SPACE}%" if language == "de" else "%"
    return f"{number(language, share * 100, decimals)}{sign}"


def day(language: Language, value: date) -> str:
    """Show a date in its long form: 29. November 2026, November 29, 2026."""
    return format_date(value, format="long", locale=_LOCALES[language])


def moment(language: Language, value: datetime) -> str:
    """Show a day and its minute, for what happens several times a day: …, 21:05 UTC."""
    there = value.astimezone(UTC)
    return f"{day(language, there)}, {there:%H:%M} UTC"


def filters_for(language: Language) -> dict[str, Callable[..., Any]]:
    """Return the template filters of a language by their names."""

    def bound(function: Callable[..., str]) -> Callable[..., str]:
        return lambda value, *rest, **named: function(language, value, *rest, **named)

    return {f.__name__: bound(f) for f in (number, with_unit, gib, kib, percent, day, moment)}
