"""The shapes of what the API says about pasted logs and metrics pages."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from app.core.reasons import Number
from app.web.api_schema import Shape

Plain = Number | bool | None


class Named(Shape):
    """Named figures; which ones depends on what the text says."""

    model_config = ConfigDict(extra="allow", frozen=True)


class LogLine(Shape):
    """One recognised line, numbered from 1; `start` is the place of its start in `starts`."""

    line: int
    kind: str
    values: dict[str, Number]
    start: int | None


class Effect(Shape):
    """Figures of one engine before and after a change."""

    kv_cache_size_tokens: tuple[int, int]
    max_concurrency: tuple[float, float]


class FindingFound(Shape):
    """Something that is wrong or could be better; null in `change` takes a flag away."""

    code: str
    severity: Literal["no", "tight", "info"]
    numbers: dict[str, Number]
    change: dict[str, Plain]
    effect: Effect | None


class ComparedFigure(Shape):
    """One term predicted and printed; memory in GiB per card."""

    term: str
    unit: Literal["GiB", "tokens", "requests"]
    predicted: float
    low: float
    high: float
    printed: float
    difference: float = Field(description="Printed less predicted.")
    likely_cause: str | None
    cause_numbers: dict[str, Number]


class FailureWay(Shape):
    """A change after which the start is expected to succeed; it was sized."""

    change: dict[str, Plain]
    requests: int


class FailureFound(Named):
    """Why the start failed, with the numbers of its text."""

    code: str
    line: int
    stage: Literal["start", "loading", "profiling", "capture", "running"]
    ways_out: list[FailureWay]


class StartFound(Shape):
    """One start of one server. What the log does not say is null or absent."""

    vllm_version: str | None
    vllm_version_at_least: str | None
    vllm_version_at_most: str | None
    engine: Literal["V0", "V1"] | None
    model: str | None = Field(description="As the log writes it.")
    model_slug: str | None = Field(description="The catalogue's, null for a model it lacks.")
    gpu: str | None
    gpu_candidates: list[str]
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    data_parallel_size: int | None
    decode_context_parallel_size: int | None
    enable_expert_parallel: bool | None
    engine_args: Named = Field(description="Only what the log states, under vLLM's names.")
    observed: Named = Field(
        description="Figures of the binding rank; `per_rank` has those that ranks print apart."
    )
    failure: FailureFound | None
    findings: list[FindingFound]
    compared: list[ComparedFigure]
    gaps: list[str] = Field(description="What the log does not tell, or the catalogue lacks.")
    permalink: str | None = Field(description="The sizing that starts from this measurement.")


class LogFound(Shape):
    """Everything read from a pasted log.

    The last 8 starts are worked out; earlier ones have their figures, no findings and no link.
    """

    starts: list[StartFound]
    starts_left_out: int
    lines: list[LogLine]
    complete: bool = Field(description="False where the text has more lines than any log.")


class EngineFound(Named):
    """One engine of a metrics page; what the page does not say is absent."""

    engine: str
    model: str | None


class MetricsVerdict(Shape):
    """What holds the server back, and which limit the real mix of requests meets first."""

    code: Literal["cache_bound", "batch_bound", "room_to_spare", "idle"]
    numbers: dict[str, float]
    first_limit: Literal["kv_cache", "max_num_seqs"] | None


class MetricsFinding(Shape):
    """Something worth changing."""

    code: str
    severity: Literal["no", "tight", "info"]
    numbers: dict[str, Number]


class RequestLengths(Shape):
    """Lengths of all finished requests, prompt and answer together.

    `counts[i]` requests lie above the bound before and up to `upper_bounds[i]` tokens. vLLM counts
    prompts and answers apart; the longest prompts are taken to have the longest answers.
    """

    upper_bounds: list[int]
    counts: list[int]
    answer_percent: float = Field(description="Generated part of all tokens.")
    length_histogram: str = Field(description="The same as `/need` and `/api/v1/request-mix` take.")


class MetricsNote(Shape):
    """A part of the page that was not used; line 0 is the page as a whole."""

    line: int
    code: str


class MetricsFound(Shape):
    """Everything read from a metrics page; `change` is what happened between two pages."""

    engines: list[EngineFound]
    verdict: MetricsVerdict | None
    findings: list[MetricsFinding]
    change: Named | None
    request_lengths: RequestLengths | None
    problems: list[MetricsNote]
