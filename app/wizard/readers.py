"""Read one field's text: integers, lengths, sizes, decimals, flags, objects.

People and links write the same number in several ways. Integers may be grouped by three with a
point, a comma, a space or an apostrophe, in either language; a decimal field takes a point or a
comma. What could mean two things is refused rather than guessed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

from app.core.reasons import Number
from app.core.units import HumanReadableIntError, human_readable_int, parse_max_model_len

_SPACES = str.maketrans(dict.fromkeys("\u00a0\u202f\u2009\u2007", " "))
_GROUPED = re.compile(r"([+-]?[0-9]{1,3})(?:([., '_\u2019])[0-9]{3})(?:\2[0-9]{3})*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
_DECIMAL_COMMA_SUFFIX = re.compile(r"[0-9]{1,19},[0-9]{1,19}[kKmMgGtT]")
_COMMA_OF_THREE = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_GROUPED_DECIMAL = re.compile(r"[+-]?[0-9]{1,3}(?:([.,])[0-9]{3})+([.,])[0-9]{1,40}")
_FLAGS = {
    "true": True, "1": True, "on": True, "yes": True,
    "false": False, "0": False, "off": False, "no": False,
}  # fmt: skip
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

MAX_TEXT_LENGTH = 256
MAX_OBJECT_LENGTH = 1_000_000
LONGEST_ENGINE_INTEGER = 18


class UnreadableError(ValueError):
    """A text that is no value of its field: a code and the numbers its message names."""

    def __init__(self, code: str, numbers: tuple[tuple[str, Number], ...] = ()) -> None:
        """Keep code and numbers for the message."""
        super().__init__(code)
        self.code = code
        self.numbers = numbers


def read_text(text: str) -> str:
    """Read a name: at most 256 characters, none a control character or half a surrogate pair."""
    if len(text) > MAX_TEXT_LENGTH:
        raise UnreadableError("too_long", (("maximum", MAX_TEXT_LENGTH),))
    if _UNPRINTABLE.search(text):
        raise UnreadableError("unprintable_character")
    return text.strip()


def read_integer(text: str) -> int:
    """Read `32768`, `32.768`, `32,768`, `32 768`; refuse `3.2768` and `0.92`."""
    plain = _ungrouped(text)
    if not _INTEGER.fullmatch(plain):
        raise UnreadableError("not_an_integer")
    return int(plain)


def read_size(text: str) -> int:
    """Read an integer with vLLM's suffixes (`8k` = 8,000, `8K` = 8,192), or grouped by three.

    Raises UnreadableError; for `1.5K` with the spelling that vLLM suggests.
    """
    return _human_readable(text, human_readable_int)


def read_length(text: str) -> int:
    """Read `--max-model-len`: a size, or `auto` and `-1` for AUTO_MAX_MODEL_LEN."""
    return _human_readable(text, parse_max_model_len)


def read_decimal(text: str, lang: str) -> float:
    """Read a decimal: `0.92` and `0,92` alike.

    Links carry a decimal point, so a lone point is one in every language. A lone comma with three
    digits after it (`1,234`) is a decimal in German; in English it could be either, so it is
    refused.
    """
    plain = text.translate(_SPACES).strip()
    if lang != "de" and _COMMA_OF_THREE.fullmatch(plain):
        raise UnreadableError("ambiguous_number", (("decimal", plain.replace(",", ".")),))
    grouped = _GROUPED_DECIMAL.fullmatch(plain)
    if grouped and grouped[1] != grouped[2]:
        plain = plain.replace(grouped[1], "")
    plain = plain.replace(",", ".")
    if not _DECIMAL.fullmatch(plain):
        raise UnreadableError("not_a_number")
    value = float(plain)
    if not math.isfinite(value):
        raise UnreadableError("not_a_number")
    return value


def read_flag(text: str) -> bool:
    """Read `true` and `false`; also what HTML forms and shells write for them."""
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise UnreadableError("not_a_flag") from None


def read_object(text: str) -> str:
    """Read a JSON object and return it as canonical JSON text (hashable, one spelling).

    `NaN` and `Infinity`, which Python writes into some config.json, become null: no length, size
    or count is ever one of them.
    """
    if len(text) > MAX_OBJECT_LENGTH:
        raise UnreadableError("too_long", (("maximum", MAX_OBJECT_LENGTH),))
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        if not isinstance(value, dict):
            raise UnreadableError("not_an_object")
        return canonical_json(value)
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError("not_an_object") from None


def canonical_json(value: object) -> str:
    """One spelling of a JSON value: sorted keys, no blanks.

    Raises ValueError for NaN, infinities and halves of surrogate pairs.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    text.encode()
    return text


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _ungrouped(text: str) -> str:
    plain = text.translate(_SPACES).strip()
    grouped = _GROUPED.fullmatch(plain)
    return plain.replace(grouped[2], "") if grouped else plain


def _human_readable(text: str, read: Callable[[str], int]) -> int:
    plain = _ungrouped(text)
    if _INTEGER.fullmatch(plain) and len(plain) > LONGEST_ENGINE_INTEGER:
        return int(plain)
    if _DECIMAL_COMMA_SUFFIX.fullmatch(plain):
        plain = plain.replace(",", ".")
    try:
        return read(plain)
    except HumanReadableIntError as error:
        if error.code == "decimals_with_binary_suffix":
            raise UnreadableError(error.code, (("suggestion", plain.lower()),)) from None
        raise UnreadableError(error.code) from None
