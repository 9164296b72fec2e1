"""The number people read to each other is easy to say and hard to mistype."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.quotes.reference import check_digit, grouped, new_reference, read_reference

bodies = st.text("0123456789", min_size=8, max_size=8)


def test_a_new_number_reads_back() -> None:
    """What is drawn is three groups of three digits that check."""
    drawn = {new_reference() for _ in range(200)}
    assert len(drawn) == 200
    assert all(read_reference(each) == each and len(each) == 11 for each in drawn)


@given(bodies, st.integers(0, 8), st.integers(1, 9))
def test_one_wrong_digit_is_noticed(body: str, place: int, change: int) -> None:
    """A number with one digit changed is no number."""
    digits = body + check_digit(body)
    wrong = digits[:place] + str((int(digits[place]) + change) % 10) + digits[place + 1 :]
    assert read_reference(wrong) is None
    assert read_reference(digits) == grouped(digits)


def test_the_check_digit_is_luhns() -> None:
    """The usual example of ISO 7812: 1789372997 gets a 4."""
    assert check_digit("1789372997") == "4"


@pytest.mark.parametrize("typed", ["799-273-982", " 799 273 982", "799273982", "799.273.982"])
def test_any_grouping_is_read(typed: str) -> None:
    """Spaces, dots, dashes or nothing between the groups."""
    assert read_reference(typed) == "799-273-982"


@pytest.mark.parametrize(
    "typed", ["", "799-273-98", "799-273-9866", "ann@example.com", "٧٩٩٢٧٣٩٨٦"]
)
def test_other_texts_are_no_number(typed: str) -> None:
    """Too short, too long, letters and other scripts are searched as words instead."""
    assert read_reference(typed) is None
