"""How a number came about, as data."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.reasons import Number


@dataclass(frozen=True, slots=True)
class Step:
    """One line of "how we got here".

    `code` selects formula and wording in the templates; `inputs` are the named values that went in;
    `result` with `unit` (`bytes`, `tokens`, `blocks`, `requests`, `ratio`, `layers`, ...) came out;
    `source` says where the rule is from (a vLLM file and release, or the vendor's planning rule).
    """

    code: str
    inputs: tuple[tuple[str, Number], ...]
    result: Number
    unit: str
    source: str
