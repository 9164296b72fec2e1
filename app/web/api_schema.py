"""The shapes of the JSON API, as pydantic models: what is sent is built from what is documented."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from app.core.reasons import Number, ReasonCode

Value = Number | bool | None
EngineValue = Number | bool | dict[str, int] | None


class Shape(BaseModel):
    """Base of all shapes: what is documented is all there is."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Ends(Shape):
    """A value with the range nine of ten starts fall in."""

    low: float
    likely: float
    high: float


class WholeEnds(Shape):
    """The same for what is counted in whole bytes (per card) or tokens."""

    low: int
    likely: int
    high: int


class ModelFacts(Shape):
    """The model and the checkpoint that were sized."""

    slug: str | None = Field(description="Catalogue slug; null for a pasted config.")
    name: str
    hf_id: str | None
    architecture: str
    num_hidden_layers: int | None
    checkpoint: str | None = Field(description="Hugging Face id of the checkpoint.")
    precision: str | None
    checkpoint_bytes: int | None
    kv_cache_scheme: str | None = Field(description="KV cache dtype the checkpoint declares.")
    confidence: str | None = Field(description="How its bytes are known.")


class GpuFacts(Shape):
    """The card that was sized."""

    slug: str | None
    name: str
    driver_memory_bytes: int | None = Field(description="What nvidia-smi prints.")
    total_memory_bytes: int | None = Field(description="What vLLM sees.")
    compute_capability: str | None


class LayoutFacts(Shape):
    """How the model is split; `cards` over all engines and copies."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    decode_context_parallel_size: int
    enable_expert_parallel: bool
    replicas: int
    cards: int
    server: str | None = None


class Group(Shape):
    """One KV cache group of the engine."""

    kind: str
    num_layers: int
    block_size: int
    page_size_bytes: int
    blocks_per_request: int


class Term(WholeEnds):
    """One term of a card's memory, bytes. `likely` sums to the card's total over all terms."""

    code: str
    source: str


class Spread(Shape):
    """Expected tokens and concurrency with their range, and the share of starts it covers."""

    kv_cache_size_tokens: WholeEnds
    max_concurrency: Ends
    coverage: float


class PlanningFigures(Shape):
    """The vendor's planning rule, all copies together."""

    kv_cache_size_tokens: int
    max_concurrency: float
    requests: int


class Verdict(Shape):
    """Requests that both figures promise, and whether at least one fits."""

    requests: int
    fits: bool


class AssumptionMade(Shape):
    """Something the answer took for granted."""

    code: str
    values: dict[str, Number]


class StepTaken(Shape):
    """One line of "how we got here"."""

    code: str
    inputs: dict[str, Number]
    result: Number
    unit: str
    source: str


class LoadChecked(Shape):
    """One check of the measured load against cache and batch limit."""

    code: str
    numbers: dict[str, Number]


class WayOut(Shape):
    """Inputs to change so that it fits; checked by sizing it."""

    change: dict[str, Value] = Field(description="null: leave that input out.")
    max_concurrency: float | None


class ReasonGiven(Shape):
    """Why vLLM would refuse."""

    code: ReasonCode
    vllm_error: str = Field(description="The text that release raises; empty where unknown.")
    numbers: dict[str, Number]
    estimated_max_model_len: int | None
    ways_out: list[WayOut]


class SizingAnswer(Shape):
    """An answer. Figures that do not exist (a start that vLLM refuses) are null."""

    ok: bool
    vllm_version: str
    model: ModelFacts
    gpu: GpuFacts | None
    layout: LayoutFacts
    engine_args: dict[str, EngineValue]
    log_lines: list[str]
    kv_cache_size_tokens: int | None
    max_concurrency: float | None
    max_model_len: int | None
    num_gpu_blocks: int | None
    block_size: int | None
    bytes_per_block: int | None
    groups: list[Group]
    weights_bytes_per_rank: int | None = Field(
        description="Parameters and buffers of the largest rank, as vLLM creates them. What they "
        "take up on the card once loaded is the term `weights` of `memory`."
    )
    available_kv_cache_memory_bytes: WholeEnds | None
    range: Spread | None
    memory: list[Term]
    planning: PlanningFigures | None
    verdict: Verdict
    assumptions: list[AssumptionMade]
    steps: list[StepTaken]
    load: list[LoadChecked]
    permalink: str | None = Field(description="Null where a pasted config is too long for a link.")
    reason: ReasonGiven | None = None


class ShortReason(Shape):
    """Why vLLM would refuse, without ways out."""

    code: ReasonCode
    numbers: dict[str, Number]


class MatrixCell(Shape):
    """One card in one layout. Tokens and concurrency of one engine, requests of all copies."""

    gpu: str
    layout: LayoutFacts
    ok: bool
    kv_cache_size_tokens: int | None
    max_concurrency: float | None
    planning_requests: int | None
    verdict_requests: int
    reason: ShortReason | None


class Matrix(Shape):
    """One model on many cards in many layouts."""

    data_version: str
    rows: list[MatrixCell]


class Detail(Shape):
    """One thing that is wrong with a request. `msg` names the nearest known name."""

    loc: list[str | int]
    msg: str
    code: str


class Refused(Shape):
    """The answer to a request that could not be read."""

    detail: list[Detail]


class CheckpointRow(Shape):
    """A checkpoint of a catalogue model."""

    hf_id: str
    precision: str
    weights_bytes: int | None
    kv_cache_scheme: str | None
    confidence: str
    source: str


class ModelRow(Shape):
    """A model of the catalogue."""

    slug: str
    name: str
    maker: str
    hf_id: str
    architecture: str | None = Field(description="Null where this site cannot read the model.")
    num_hidden_layers: int | None
    checkpoints: list[CheckpointRow]


class GpuRow(Shape):
    """A card of the catalogue; null is unknown."""

    slug: str
    name: str
    architecture: str
    compute_capability: str | None
    driver_memory_mib: int | None
    total_memory_bytes: int | None
    nvlink: bool | None
    tdp_watts: int | None


class SliceRow(GpuRow):
    """A MIG slice, named and sized like a card; `mig_instances` of it fit on one `mig_of`."""

    mig_of: str
    mig_profile: str
    mig_instances: int


class ReleaseRow(Shape):
    """A vLLM release with rules of its own."""

    version: str
    gpu_memory_utilization: float
    kv_cache_dtypes: list[str]
    log_formats: list[str]
    memory_estimate: bool = Field(description="Whether memory is estimated for this release.")
    changes: list[str] = Field(description="Rules that moved against the row before.")


class ModelList(Shape):
    """All models."""

    data_version: str
    models: list[ModelRow]


class GpuList(Shape):
    """All cards, and the MIG slices whose memory is known."""

    data_version: str
    gpus: list[GpuRow]
    slices: list[SliceRow]


class ReleaseList(Shape):
    """All releases with rules of their own, oldest first."""

    data_version: str
    default: str
    releases: list[ReleaseRow]
