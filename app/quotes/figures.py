"""The figures of a frozen result that mails, pages and tables show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figures:
    """What was asked for and promised.

    `expected` is (low, likely, high) of the log's concurrency per engine, equal where the memory
    was given; None where vLLM refuses or nothing is estimated, with the code in `reason`.
    """

    model: str
    checkpoint: str | None
    precision: str | None
    gpu: str | None
    cards: int
    replicas: int
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    kv_cache_dtype: str | None
    max_model_len: int | None
    vllm_version: str
    requests: int
    planned_requests: int | None
    expected: tuple[float, float, float] | None
    log_lines: tuple[str, ...]
    reason: str | None
    vllm_error: str


def figures_of(result: Mapping[str, Any]) -> Figures:
    """Read the figures of a result as the API writes it (`app.web.api_schema.SizingAnswer`)."""
    model, layout = result["model"], result["layout"]
    planning, reason = result["planning"], result["reason"] or {}
    return Figures(
        model=model["name"],
        checkpoint=model["checkpoint"],
        precision=model["precision"],
        gpu=result["gpu"]["name"] if result["gpu"] else None,
        cards=layout["cards"],
        replicas=layout["replicas"],
        tensor_parallel_size=layout["tensor_parallel_size"],
        pipeline_parallel_size=layout["pipeline_parallel_size"],
        data_parallel_size=layout["data_parallel_size"],
        kv_cache_dtype=result["engine_args"].get("kv_cache_dtype"),
        max_model_len=result["max_model_len"],
        vllm_version=result["vllm_version"],
        requests=result["verdict"]["requests"],
        planned_requests=planning["requests"] if planning else None,
        expected=_expected(result),
        log_lines=tuple(result["log_lines"]),
        reason=reason.get("code"),
        vllm_error=reason.get("vllm_error", ""),
    )


def _expected(result: Mapping[str, Any]) -> tuple[float, float, float] | None:
    if result["range"]:
        ends = result["range"]["max_concurrency"]
        return ends["low"], ends["likely"], ends["high"]
    exact = result["max_concurrency"]
    return None if exact is None else (exact, exact, exact)
