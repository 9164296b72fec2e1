"""Answers as a query string: canonical, so that equal answers have one address.

Keys are vLLM's names in the order of `inputs.py`, then `data` (version of the catalogue) and `v`
(version of this format). Only answers that differ from their default are written. A default that
changes one day is a new `v`, whose reader fills in the old default for older links.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from app.wizard import pasted
from app.wizard.answers import FORMAT_VERSION, Answers
from app.wizard.inputs import INPUTS, UNSURE

MAX_QUERY_LENGTH: Final = 8_000
WORKBENCH_PATHS: Final = {"de": "/de/rechner", "en": "/en/workbench"}
_DEFAULTS: Final = Answers()


def query_pairs(answers: Answers) -> tuple[tuple[str, str], ...] | None:
    """Write the answers as name and text; None where a pasted config is too long for a link."""
    pairs: list[tuple[str, str]] = []
    for each in INPUTS:
        value = getattr(answers, each.name)
        if each.name in answers.unsure:
            pairs.append((each.name, UNSURE))
        elif value != getattr(_DEFAULTS, each.name) and each.name not in pasted.PARTS:
            pairs.append((each.name, text_of(value)))
    if answers.hf_config is not None:
        spec = pasted.encode(answers.hf_config, answers.hf_quant_config)
        if spec is None:
            return None
        pairs.append(("spec", spec))
    return tuple(pairs)


def query_string(answers: Answers, data_version: str = "") -> str | None:
    """Write the whole query of a link; None where it would exceed what the site reads."""
    pairs = query_pairs(answers)
    if pairs is None:
        return None
    data = (("data", data_version),) if data_version else ()
    query = urlencode((*pairs, *data, ("v", str(FORMAT_VERSION))), safe="/:,")
    return query if len(query) <= MAX_QUERY_LENGTH else None


def permalink(answers: Answers, lang: str, data_version: str = "") -> str | None:
    """Write the path and query of the workbench with these answers, in a language (de, en)."""
    query = query_string(answers, data_version)
    return None if query is None else f"{WORKBENCH_PATHS[lang]}?{query}"


def text_of(value: object) -> str:
    """Write one value as a link spells it: `true`, `0.92`, canonical JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
