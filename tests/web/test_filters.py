"""How numbers, amounts and dates look in each language."""

from datetime import date, datetime, timedelta, timezone

import pytest

from app.web.filters import filters_for
from app.web.locale import Language

NARROW = "\u202f"
# after midnight in Berlin
LATE = datetime(2026, 11, 30, 0, 5, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("language", "name", "arguments", "shown"),
    [
        ("de", "number", (643_232,), "643.232"),
        ("en", "number", (643_232,), "643,232"),
        ("de", "number", (15.7041, 2), "15,70"),
        ("en", "number", (0.77, 2), "0.77"),
        ("de", "number", (-1_234,), "\u22121.234"),
        ("de", "number", (10_000_000_000,), "10.000.000.000"),
        ("en", "gib", (int(67.7 * 2**30),), f"67.7{NARROW}GiB"),
        ("de", "gib", (2**30, 2), f"1,00{NARROW}GiB"),
        ("en", "kib", (163_840,), f"160{NARROW}KiB"),
        ("de", "percent", (0.92,), f"92{NARROW}%"),
        ("en", "percent", (0.925, 1), "92.5%"),
        ("de", "with_unit", (12.5, "ms", 1), f"12,5{NARROW}ms"),
        ("de", "day", (date(2026, 11, 29),), "29. November 2026"),
        ("en", "day", (date(2026, 11, 29),), "November 29, 2026"),
        ("en", "moment", (LATE,), "November 29, 2026, 23:05 UTC"),
        ("de", "moment", (LATE,), "29. November 2026, 23:05 UTC"),
    ],
)
def test_filters(language: Language, name: str, arguments: tuple[object, ...], shown: str) -> None:
    """Each filter groups, rounds and joins units the way its language does."""
    assert filters_for(language)[name](*arguments) == shown
