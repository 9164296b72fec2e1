"""The figures of a frozen result that mails, pages and tables show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MEASURED: Final = frozenset({"terms_measured", "terms_carried_over"})


@dataclass(frozen=True, slots=True)
class Figures:
    """What was asked for and promised.

    `concurrency` is the cautious figure behind `requests`, unrounded, over all copies. `expected`
    is (low, likely, high) of the log's concurrency per engine, equal where the memory was given;
    None where vLLM refuses (`reason`) or nothing is estimated. `is_measured` where its memory was
    read from a start log, of this server or of another one.
    """

    model: str
    checkpoint: str | None
    precision: str | None
    gpu: str | None
    cards: int
    layout: Mapping[str, Any]
    kv_cache_dtype: str | None
    max_model_len: int | None
    vllm_version: str
    requests: int
    concurrency: float | None
    planned_requests: int | None
    expected: tuple[float, float, float] | None
    is_measured: bool
    log_lines: tuple[str, ...]
    reason: Mapping[str, Any] | None


def figures_of(result: Mapping[str, Any]) -> Figures:
    """Read the figures of a result as the API writes it (`app.web.api_schema.SizingAnswer`)."""
    model, layout, planning = result["model"], result["layout"], result["planning"]
    expected = _expected(result)
    engines = layout["replicas"] * layout["data_parallel_size"]
    cautious = [expected[0] * engines] if expected else []
    if planning:
        cautious.append(planning["max_concurrency"])
    return Figures(
        model=model["name"],
        checkpoint=model["checkpoint"],
        precision=model["precision"],
        gpu=result["gpu"]["name"] if result["gpu"] else None,
        cards=layout["cards"],
        layout=layout,
        kv_cache_dtype=result["engine_args"].get("kv_cache_dtype"),
        max_model_len=result["max_model_len"],
        vllm_version=result["vllm_version"],
        requests=result["verdict"]["requests"],
        concurrency=min(cautious, default=None),
        planned_requests=planning["requests"] if planning else None,
        expected=expected,
        is_measured=not _MEASURED.isdisjoint(each["code"] for each in result["assumptions"]),
        log_lines=tuple(result["log_lines"]),
        reason=result["reason"],
    )


def _expected(result: Mapping[str, Any]) -> tuple[float, float, float] | None:
    if result["range"]:
        ends = result["range"]["max_concurrency"]
        return ends["low"], ends["likely"], ends["high"]
    exact = result["max_concurrency"]
    return None if exact is None else (exact, exact, exact)
