"""What people enter is read, or named as a problem with every text kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.quotes.request import LINES, MAX_MESSAGE, MAX_START_LOG, Contact, read_quote_form

GOOD = {"email": "ann@example.com"}


def _code(name: str, text: str) -> str:
    problem = read_quote_form({**GOOD, name: text}).problem(name)
    return problem.code if problem else ""


def test_an_address_alone_is_enough() -> None:
    """Only the e-mail address is required."""
    form = read_quote_form(GOOD)
    assert (form.contact, form.problems) == (Contact(email="ann@example.com"), ())


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (" ann@example.com ", "ann@example.com"),
        ("ann.o'neil+gpu@mail.example.co.uk", "ann.o'neil+gpu@mail.example.co.uk"),
        ("ann@müller.example", "ann@xn--mller-kva.example"),
    ],
)
def test_good_addresses_are_kept(typed: str, kept: str) -> None:
    """Usual addresses pass; an international domain is written as mail servers want it."""
    assert read_quote_form({"email": typed}).contact.email == kept


@pytest.mark.parametrize(
    "text",
    [
        "ann", "@example.com", "ann@", "ann@localhost", "a..b@example.com", ".a@example.com",
        "ann@exa mple.com", "ann@-x.example", "ann@example..com", "a b@example.com",
        "Ann <ann@example.com>", "ann@example.com,bob@example.com", "änn@example.com",
        f"{'a' * 65}@example.com", f"a@{'b' * 64}.example", "ann@[127.0.0.1]", "ann@example.com.",
    ],
)  # fmt: skip
def test_addresses_that_no_server_takes_are_named(text: str) -> None:
    """Half addresses, lists and names are refused before a mail bounces."""
    assert _code("email", text) == "email_invalid"


def test_a_missing_address_is_named() -> None:
    """An empty form has exactly one problem."""
    (problem,) = read_quote_form({}).problems
    assert (problem.field, problem.code) == ("email", "email_missing")


@pytest.mark.parametrize("name", ["email", *LINES])
@pytest.mark.parametrize("sign", ["\r\n", "\n", "\r", "\0", "\x85", "\u2028", "\u202e", "\x1b"])
def test_no_line_holds_a_second_line(name: str, sign: str) -> None:
    """A line break, a control sign or a turned direction in a one-line field is refused."""
    assert _code(name, f"ann{sign}Bcc: all@example.com") == "unprintable_character"


@given(st.dictionaries(st.sampled_from([*LINES, "email", "message", "quantity"]), st.text()))
def test_any_text_is_read_and_kept(texts: dict[str, str]) -> None:
    """Whatever is sent, reading does not fail, keeps the text, and lets no line break through."""
    form = read_quote_form(texts)
    assert all(form.value(name) == text for name, text in texts.items() if text.isprintable())
    for name in (*LINES, "email"):
        value = getattr(form.contact, name)
        assert len(value.splitlines()) <= 1


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("quantity", "0", "quantity_invalid"),
        ("quantity", "two", "quantity_invalid"),
        ("quantity", "-1", "quantity_invalid"),
        ("quantity", "1.5", "quantity_invalid"),
        ("quantity", "٣", "quantity_invalid"),
        ("quantity", "9" * 9, "quantity_invalid"),
        ("quantity", " 10000 ", ""),
        ("message", "x" * MAX_MESSAGE, ""),
        ("message", "x" * (MAX_MESSAGE + 1), "too_long"),
        ("message", "a\tb\r\nc", ""),
        ("message", "a\0b", "unprintable_character"),
        ("message", "https://a http://b www.c", ""),
        ("message", "https://a http://b www.c HTTPS://d", "many_links"),
        ("start_log", "x" * (MAX_START_LOG + 1), "too_long"),
        ("name", "x" * 201, "too_long"),
    ],
)
def test_limits_are_named(name: str, text: str, code: str) -> None:
    """Each limit is checked at its edge."""
    assert _code(name, text) == code


def test_a_log_is_kept_but_for_colours_and_control_signs() -> None:
    """Colours of a terminal are left out; what no page can show is replaced."""
    log = read_quote_form({**GOOD, "start_log": "\nINFO \x1b[32mok\x1b[0m\0\r\nx\n"}).contact
    assert log.start_log == "INFO ok\N{REPLACEMENT CHARACTER}\nx"
