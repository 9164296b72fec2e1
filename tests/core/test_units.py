"""Rounding up, and the integers that vLLM's argument parser takes."""

import pytest

from app.core.units import (
    AUTO_MAX_MODEL_LEN,
    HumanReadableIntError,
    ceil_div,
    human_readable_int,
    parse_max_model_len,
)


def test_division_rounds_up_without_floats() -> None:
    """Whole quotients stay, every remainder counts for one more, however large the numbers are."""
    assert [ceil_div(n, 16) for n in (0, 1, 16, 17)] == [0, 1, 1, 2]
    assert ceil_div(2**70 + 1, 2) == 2**69 + 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4096", 4096),
        (" 4096\n", 4096),
        ("-5", -5),
        ("1_000", 1000),
        ("1k", 1000),
        ("1K", 1024),
        ("2m", 2_000_000),
        ("2M", 2 * 1024**2),
        ("3g", 3_000_000_000),
        ("3G", 3 * 1024**3),
        ("4t", 4_000_000_000_000),
        ("4T", 4 * 1024**4),
        ("25.6k", 25_600),
        (" 1.5m ", 1_500_000),
    ],
)
def test_suffixes_are_decimal_in_lower_and_binary_in_upper_case(text: str, value: int) -> None:
    """vllm/utils/argparse_utils.py: k, m, g, t are powers of 1,000, their capitals of 1,024."""
    assert human_readable_int(text) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1.5K", "decimals_with_binary_suffix"),
        ("0.5T", "decimals_with_binary_suffix"),
        ("1.5", "not_an_integer"),
        ("", "not_an_integer"),
        ("k", "not_an_integer"),
        ("12kk", "not_an_integer"),
        ("1__0", "not_an_integer"),
        ("9" * 20, "not_an_integer"),
    ],
)
def test_anything_else_is_refused_with_what_was_given(text: str, code: str) -> None:
    """The error names its kind, and holds the text for the message."""
    with pytest.raises(HumanReadableIntError) as refused:
        human_readable_int(text)
    error = refused.value
    assert (error.code, error.text, error.args) == (code, text, (code, text))


def test_a_length_may_be_left_to_the_engine() -> None:
    """`auto` and -1 mean the longest that fits; everything else is an integer as above."""
    assert [parse_max_model_len(text) for text in ("auto", " AUTO ", "-1")] == [
        AUTO_MAX_MODEL_LEN
    ] * 3
    assert parse_max_model_len("32k") == 32_000
    with pytest.raises(HumanReadableIntError):
        parse_max_model_len("automatic")
