"""One field's text becomes a value, or a named refusal."""

import pytest

from app.wizard.readers import (
    UnreadableError,
    read_decimal,
    read_flag,
    read_integer,
    read_length,
    read_object,
    read_size,
    read_text,
)


def code(read: object, *args: str) -> str:
    """Return the code with which a reader refuses a text."""
    with pytest.raises(UnreadableError) as caught:
        read(*args)  # type: ignore[operator]
    return caught.value.code


@pytest.mark.parametrize(
    "text",
    ["32768", "32.768", "32,768", "32 768", "32\u00a0768", "32\u202f768", "32'768", " 32768 "],
)
def test_integers_may_be_grouped_by_three(text: str) -> None:
    """Every usual way of grouping gives the same integer, whatever the language."""
    assert read_integer(text) == 32768
    assert read_length(text) == 32768


@pytest.mark.parametrize(
    "text", ["3.2768", "0.92", "1,23", "12.34.567", "1.234,567", "1e5", "x", "--1", "1" * 41, "٣"]
)
def test_what_does_not_group_by_three_is_no_integer(text: str) -> None:
    """A point or comma elsewhere is refused rather than dropped."""
    assert code(read_integer, text) == "not_an_integer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8k", 8000), ("8K", 8192), ("25.6k", 25600), ("1,5k", 1500), ("auto", -1), ("-1", -1)],
)
def test_lengths_follow_the_engine(text: str, expected: int) -> None:
    """Suffixes, `auto` and -1 mean what vLLM makes of them."""
    assert read_length(text) == expected


@pytest.mark.parametrize("text", ["1.5K", "1,5K"])
def test_decimals_with_a_binary_suffix_suggest_the_other_one(text: str) -> None:
    """The refusal of 1.5K names 1.5k, as vLLM's own does."""
    with pytest.raises(UnreadableError) as caught:
        read_length(text)
    assert caught.value.code == "decimals_with_binary_suffix"
    assert caught.value.numbers == (("suggestion", "1.5k"),)


def test_sizes_know_no_auto() -> None:
    """`auto` is a length, not a size."""
    assert read_size("20G") == 20 * 2**30
    assert code(read_size, "auto") == "not_an_integer"


@pytest.mark.parametrize("lang", ["de", "en"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.92", 0.92),
        ("0,92", 0.92),
        ("67.702", 67.702),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        (".9", 0.9),
        ("1", 1.0),
        ("9e-1", 0.9),
    ],
)
def test_decimals_take_point_and_comma(text: str, lang: str, expected: float) -> None:
    """What can mean only one thing is read alike in both languages."""
    assert read_decimal(text, lang) == expected


def test_a_comma_before_three_digits_is_a_decimal_only_in_german() -> None:
    """1,234 is 1.234 in German and refused in English, where it could be 1234."""
    assert read_decimal("1,234", "de") == 1.234
    assert code(read_decimal, "1,234", "en") == "ambiguous_number"


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "0x1", "1..2", "1.2.3", ".", ""])
def test_what_is_no_number_is_refused(text: str) -> None:
    """Neither NaN nor infinity nor broken text passes as a decimal."""
    assert code(read_decimal, text, "en") == "not_a_number"


def test_flags_read_form_and_shell_spellings() -> None:
    """A checkbox's `on` is true; anything unknown is refused."""
    assert [read_flag(text) for text in ("true", "on", "1", "False", "off")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert code(read_flag, "maybe") == "not_a_flag"


@pytest.mark.parametrize(
    "text",
    ["[]", '{"a": "\\ud800"}', "1", "{", "[" * 100_000, "{'a': 1}"],
)
def test_only_json_objects_are_objects(text: str) -> None:
    """Lists, half characters and bottomless nesting are refused, not raised through."""
    assert code(read_object, text) == "not_an_object"


def test_objects_have_one_spelling() -> None:
    """Equal objects give equal text; what is no number in JSON becomes null."""
    assert read_object('{"a": [0.0, Infinity, NaN, 1e999]}') == '{"a":[0.0,null,null,null]}'
    assert read_object('{"b": 1, "a": [2]}') == read_object('{"a":[2],"b":1}')


def test_names_are_short_and_printable() -> None:
    """A name with a NUL, a lone surrogate or 300 letters is refused."""
    assert read_text(" Qwen/Qwen3-32B ") == "Qwen/Qwen3-32B"
    assert code(read_text, "a\x00b") == "unprintable_character"
    assert code(read_text, "a\ud800b") == "unprintable_character"
    assert code(read_text, "x" * 300) == "too_long"
