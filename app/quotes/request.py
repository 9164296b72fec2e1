"""What somebody enters to ask for a quote: read, checked, and every text as entered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MAX_EMAIL: Final = 254
MAX_LOCAL_PART: Final = 64
MAX_QUANTITY: Final = 10_000
MAX_MESSAGE: Final = 5_000
MAX_START_LOG: Final = 300_000
MAX_LINKS: Final = 3
# one-line fields and their longest text
LINES: Final[Mapping[str, int]] = {
    "name": 200, "company": 200, "phone": 50, "country": 100, "wished_date": 60,
}  # fmt: skip
FIELDS: Final = (
    "email", "name", "company", "phone", "country", "quantity", "wished_date", "message",
    "start_log", "marketing",
)  # fmt: skip
_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)
_LINK: Final = re.compile(r"https?://|www\.", re.IGNORECASE)
_NOT_IN_LINES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# what no page of HTML may hold: control signs and the code points that are no characters
NOT_IN_PAGES: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
_BIDI: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """Something entered that cannot be used.

    Codes: `email_missing`, `email_invalid`, `too_long` (maximum), `unprintable_character`,
    `quantity_invalid` (maximum), `many_links` (maximum).
    """

    code: str
    field: str
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Contact:
    """Who asks and what for. Absent texts are ""; `email` is plain ASCII, its domain in IDNA."""

    email: str = ""
    name: str = ""
    company: str = ""
    phone: str = ""
    country: str = ""
    quantity: int | None = None
    wished_date: str = ""
    message: str = ""
    start_log: str = ""
    marketing: bool = False


@dataclass(frozen=True, slots=True)
class QuoteForm:
    """A form as it was sent.

    `entered` keeps every text, so that nothing is typed twice; of it only signs that no page can
    show are left out.
    """

    contact: Contact
    problems: tuple[EntryProblem, ...]
    entered: Mapping[str, str]

    def value(self, name: str) -> str:
        """Return a field's text as entered."""
        return self.entered.get(name, "")

    def problem(self, name: str) -> EntryProblem | None:
        """Return the problem of a field."""
        return next((each for each in self.problems if each.field == name), None)


class _UnusableError(Exception):
    """Carries the problem of one field."""

    def __init__(self, code: str, **numbers: int) -> None:
        super().__init__(code)
        self.code = code
        self.numbers = tuple(numbers.items())


def read_quote_form(texts: Mapping[str, str]) -> QuoteForm:
    """Read a sent form. Never raises: what cannot be used is listed, in the order of the form."""
    given = {name: texts.get(name, "") for name in FIELDS}
    readers = {
        "email": _email,
        **dict.fromkeys(LINES, None),
        "quantity": _quantity,
        "message": _message,
        "start_log": _start_log,
    }
    values: dict[str, object] = {"marketing": bool(given["marketing"])}
    problems = []
    for name in FIELDS[:-1]:
        reader = readers[name]
        try:
            values[name] = reader(given[name]) if reader else _line(given[name], LINES[name])
        except _UnusableError as error:
            problems.append(EntryProblem(error.code, name, error.numbers))
    entered = {name: NOT_IN_PAGES.sub("", text) for name, text in given.items()}
    return QuoteForm(Contact(**values), tuple(problems), entered)  # type: ignore[arg-type]


def _line(text: str, maximum: int) -> str:
    """Return a text of one line. A line break would be a second header in a mail."""
    text = text.strip()
    if NOT_IN_PAGES.search(text) or any(
        unicodedata.category(sign) in _NOT_IN_LINES or sign in _BIDI for sign in text
    ):
        raise _UnusableError("unprintable_character")
    if len(text) > maximum:
        raise _UnusableError("too_long", maximum=maximum)
    return text


def _email(text: str) -> str:
    text = _line(text, MAX_EMAIL)
    if not text:
        raise _UnusableError("email_missing")
    local, at, domain = text.rpartition("@")
    try:
        labels = domain.encode("idna").decode("ascii").split(".")
    except UnicodeError:
        labels = []
    plain = f"{local}@{'.'.join(labels)}"
    if (
        not at
        or not _LOCAL.fullmatch(local)
        or len(local) > MAX_LOCAL_PART
        or len(labels) < 2  # noqa: PLR2004 - a name and a top-level domain
        or not all(_LABEL.fullmatch(label) for label in labels)
        or len(plain) > MAX_EMAIL
    ):
        raise _UnusableError("email_invalid")
    return plain


def _quantity(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_QUANTITY))):
        raise _UnusableError("quantity_invalid", maximum=MAX_QUANTITY)
    if not 1 <= int(text) <= MAX_QUANTITY:
        raise _UnusableError("quantity_invalid", maximum=MAX_QUANTITY)
    return int(text)


def _message(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if NOT_IN_PAGES.search(text):
        raise _UnusableError("unprintable_character")
    if len(text) > MAX_MESSAGE:
        raise _UnusableError("too_long", maximum=MAX_MESSAGE)
    if len(_LINK.findall(text)) > MAX_LINKS:
        raise _UnusableError("many_links", maximum=MAX_LINKS)
    return text


def _start_log(text: str) -> str:
    """Keep a log as it is, but for colours and signs that no page can show."""
    text = _COLOUR.sub("", text.replace("\r\n", "\n")).strip("\n")
    text = NOT_IN_PAGES.sub("\N{REPLACEMENT CHARACTER}", text)
    if len(text) > MAX_START_LOG:
        raise _UnusableError("too_long", maximum=MAX_START_LOG)
    return text
