"""Units, ceiling division and vLLM's human-readable integers."""

from __future__ import annotations

import re

KIB = 1024
MIB = 1024**2
GIB = 1024**3

_DECIMAL_SUFFIX = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_SUFFIX = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_WITH_SUFFIX = re.compile(r"([0-9]{1,19})(\.[0-9]{1,19})?([kKmMgGtT])")
_PLAIN = re.compile(r"[+-]?[0-9]{1,19}(_[0-9]{1,19}){0,6}")

AUTO_MAX_MODEL_LEN = -1


class HumanReadableIntError(ValueError):
    """A size or length that vLLM's argument parser refuses.

    `code` is `decimals_with_binary_suffix` or `not_an_integer`; `text` what was given.
    """

    def __init__(self, code: str, text: str) -> None:
        """Keep the code and the offending text for the message of the page."""
        super().__init__(code, text)
        self.code = code
        self.text = text


def ceil_div(numerator: int, denominator: int) -> int:
    """Divide two non-negative integers and round up, as vLLM's `cdiv` does."""
    return -(-numerator // denominator)


def human_readable_int(text: str) -> int:
    """Read an integer as vLLM's `human_readable_int` does.

    `8k` is 8,000, `8K` is 8,192, `25.6k` is 25,600; decimals with an upper-case suffix are
    refused, as is anything that Python's `int()` does not take.
    Raises HumanReadableIntError. Source: vllm/utils/argparse_utils.py (0.32.0).
    """
    stripped = text.strip()
    match = _WITH_SUFFIX.fullmatch(stripped)
    if match:
        whole, fraction, suffix = match.groups()
        if suffix in _DECIMAL_SUFFIX:
            return int(float(whole + (fraction or "")) * _DECIMAL_SUFFIX[suffix])
        if fraction:
            raise HumanReadableIntError("decimals_with_binary_suffix", text)
        return int(whole) * _BINARY_SUFFIX[suffix]
    if not _PLAIN.fullmatch(stripped):
        raise HumanReadableIntError("not_an_integer", text)
    return int(stripped)


def parse_max_model_len(text: str) -> int:
    """Read `--max-model-len`: an integer as above, or `auto`/`-1` for AUTO_MAX_MODEL_LEN."""
    if text.strip().lower() == "auto":
        return AUTO_MAX_MODEL_LEN
    return human_readable_int(text)
