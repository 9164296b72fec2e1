"""Builds refusals with the text that the release itself raises."""

from __future__ import annotations

from app.core.reasons import Number, Reason, ReasonCode, Refusal
from app.core.releases import Release
from app.core.units import GIB


def refuse(release: Release, code: ReasonCode, text: str = "", **numbers: Number) -> Refusal:
    """Build the refusal for `code`; `text` is the key of vLLM's own text (default: the code).

    The text's named fields are filled from `numbers`; a release without that text gives "". The
    number `estimated_max_model_len` is also the reason's own field; 0 means that none fits.
    """
    estimate = numbers.get("estimated_max_model_len")
    return Refusal(
        Reason(
            code=code,
            numbers=tuple(numbers.items()),
            vllm_error=release.error(text or code).format_map(numbers),
            estimated_max_model_len=estimate if isinstance(estimate, int) and estimate else None,
        )
    )


def gib(size_bytes: int) -> float:
    """Round bytes to GiB as vLLM's `format_gib` prints them: two decimals."""
    return round(size_bytes / GIB, 2)
