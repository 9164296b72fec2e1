"""A kind of log line: the literal it is found by, its wordings, and which releases use them.

A wording is written as vLLM's own text with fields:

    {name}          a field; its type follows from the name (`FIELD_PATTERNS`)
    {name:grouped}  an integer with thousands separators and a closing mark, for figures without
                    a unit
    [ ... ]         may be missing
    ~               what stands between a name and its figure, also in a table or in Markdown
    ...             up to 300 characters that do not matter; at most once

Every quantifier is bounded and a wording is only tried where its literal stands, so reading is
linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from app.readings.observation import Value

_FLOAT = r"-?[0-9]{1,9}(?:\.[0-9]{1,12}|(?!\.$))"
_SHARE = r"[0-9]\.[0-9]{1,18}"
_INTEGER = r"-?[0-9]{1,3}(?:,[0-9]{3}){1,5}(?![0-9,])|-?[0-9]{1,15}(?![0-9])"
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3}){1,5}(?=[`|*\").])"
_WORD = r"[\w.+\-]{1,120}"
_FLOAT_SUFFIXES: Final = (
    "_gib", "_mib", "_seconds", "_percent", "_utilization", "_concurrency", "_amount",
)  # fmt: skip
_TEXT_FIELDS: Final[Mapping[str, str]] = {
    "vllm_version": r"[0-9]{1,6}\.[0-9][\w.+\-]{0,80}",
    "model": r"\S{1,300}",
    "architecture": r"\w{1,120}",
    "platform": r"\w{1,40}",
    "gpu_name": r"[A-Za-z][\w .\-/]{1,80}?(?= {2}| {0,4}[|(\n]|\.json|,|$)",
    "device": r"(?:[A-Z]{3,4}|[a-z]{3,4})(?: \+ host)?(?::[0-9]{1,4})?",
    "word": r"\w{1,60}",
    "possessive": r"models?.{0,6}s",
    "other": r"[^,\n]{1,80}",
    "mode": r"\w{1,40}",
    "unit": r"[KMG]iB|[KMG]?B",
    "free_unit": r"[KMG]iB|[KMG]?B",
    "fingerprint": r"\w{1,64}",
    "detail": r"[^\n]{1,200}",
    "layout": r"[A-Z]{2,12}",
}
DEVICE: Final = "{device}"
_TEMPLATE_TOKEN = re.compile(r"\{(\w+)(:grouped)?\}|\.\.\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LineForm:
    """One wording and the releases that print it; None means no bound is known.

    fields  name and conversion of each group of `pattern`, in order
    """

    pattern: re.Pattern[str]
    fields: tuple[tuple[str, Callable[[str], Value]], ...]
    since: str | None
    until: str | None


@dataclass(frozen=True, slots=True)
class LineKind:
    """A kind of line.

    heads   literals, one of which stands in every such line
    lead    literal that the wording begins with, when the head is not its beginning;
            `DEVICE` for the name of a device
    merge   hits of this kind that follow each other in one record are one line
    alone   counts only where nothing else stands in the record
    """

    kind: str
    heads: tuple[str, ...]
    forms: tuple[LineForm, ...]
    lead: str = ""
    merge: bool = False
    alone: bool = False


def form(text: str, *, since: str | None = None, until: str | None = None) -> LineForm:
    """Build one wording."""
    pattern = compile_form(text)
    fields = tuple((name, _converter(name)) for name in pattern.groupindex)
    return LineForm(pattern, fields, since, until)


def line_kind(
    kind: str,
    heads: str | tuple[str, ...],
    *forms: LineForm,
    lead: str = "",
    merge: bool = False,
    alone: bool = False,
) -> LineKind:
    """Build a kind from its wordings; the first that fits is taken."""
    heads = (heads,) if isinstance(heads, str) else heads
    return LineKind(kind, heads, forms, lead=lead, merge=merge, alone=alone)


def compile_form(text: str) -> re.Pattern[str]:
    """Compile one wording. Raises ValueError for a second `...`."""
    if text.count("...") > 1:
        raise ValueError(f"more than one '...' in {text!r}")
    parts: list[str] = []
    for token in _TEMPLATE_TOKEN.finditer(text):
        name, literal = token[1], token[0]
        if name:
            parts.append(f"(?P<{name}>{_GROUPED if token[2] else _field_pattern(name)})")
        elif literal == "...":
            parts.append(r"[^\n]{0,300}?")
        elif literal == "[":
            parts.append("(?:")
        elif literal == "]":
            parts.append(")?")
        elif literal == "~":
            parts.append(r"[ :=|`*]{1,16}")
        elif literal == " ":
            parts.append(" {1,8}")
        else:
            parts.append(re.escape(literal))
    return re.compile("".join(parts))


def values_of(form: LineForm, match: re.Match[str]) -> dict[str, Value]:
    """The fields of a match as numbers and names; missing optional fields are left out."""
    return {
        name: convert(text)
        for (name, convert), text in zip(form.fields, match.groups(), strict=True)
        if text is not None
    }


def _field_pattern(name: str) -> str:
    if name in _TEXT_FIELDS:
        return _TEXT_FIELDS[name]
    if name.endswith("_utilization"):
        return _SHARE
    return _FLOAT if name.endswith(_FLOAT_SUFFIXES) else _INTEGER


def _converter(name: str) -> Callable[[str], Value]:
    if name in _TEXT_FIELDS:
        return str.strip
    return float if name.endswith(_FLOAT_SUFFIXES) else _integer


def _integer(text: str) -> int:
    return int(text.replace(",", ""))
