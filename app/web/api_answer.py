"""A sizing as the JSON API shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.explanation import explain
from app.core.load import LoadCheck, check_load
from app.core.reasons import Reason
from app.core.result import Planning, Range, SizingResult
from app.core.sizing import size
from app.core.steps import Step
from app.core.weights import parameter_bytes_per_rank
from app.web import api_schema as shape
from app.web.api_catalogue import capability_text
from app.wizard.answers import Answers
from app.wizard.card_choice import layout_of
from app.wizard.permalink import permalink
from app.wizard.sizing_request import Prepared, load_of
from app.wizard.ways_out import Way, ways_out_of

COVERAGE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Sized:
    """Everything one answer is made of; `result` is None for a model nobody can size."""

    prepared: Prepared
    result: SizingResult | None
    steps: tuple[Step, ...]
    ways_out: tuple[Way, ...]
    permalink: str | None
    load: tuple[LoadCheck, ...]


def work_out(prepared: Prepared, answers: Answers, catalogue: Catalogue, language: str) -> Sized:
    """Size a case that was read without problems, with everything an answer tells of it."""
    link = permalink(answers, language, catalogue.data_version)
    if prepared.request is None:
        return Sized(prepared, None, (), (), link, ())
    result = size(prepared.request)
    ways = () if result.ok else ways_out_of(prepared, result, catalogue)
    load = check_load(result, load_of(answers))
    return Sized(prepared, result, explain(result), ways, link, load)


def answer(sized: Sized) -> shape.SizingAnswer:
    """Put an answer together. Figures that do not exist are null."""
    prepared, result = sized.prepared, sized.result
    cache = None if result is None else result.cache
    reason = prepared.reason if result is None else result.reason
    length = None if result is None or result.resolved is None else result.resolved.max_model_len
    available = None if result is None else result.available_kv_cache_memory
    request = prepared.request
    return shape.SizingAnswer(
        ok=reason is None,
        vllm_version=prepared.answers.vllm_version if request is None else request.release.version,
        model=_model(sized),
        gpu=_gpu(prepared),
        layout=_layout(prepared),
        engine_args=_engine_args(result),
        log_lines=[] if result is None else list(result.log_lines),
        kv_cache_size_tokens=None if cache is None else cache.kv_cache_size_tokens,
        max_concurrency=None if cache is None else cache.max_concurrency,
        max_model_len=length if cache is None else cache.max_model_len,
        num_gpu_blocks=None if cache is None else cache.num_gpu_blocks,
        block_size=None if cache is None else cache.block_size,
        bytes_per_block=None if cache is None else cache.bytes_per_block,
        groups=[shape.Group(**asdict(each)) for each in (() if cache is None else cache.groups)],
        weights_bytes_per_rank=_created_weights(result),
        available_kv_cache_memory_bytes=None if available is None else _whole(available),
        range=_spread(result),
        memory=[shape.Term(**asdict(each)) for each in (() if result is None else result.memory)],
        planning=_planning(None if result is None else result.planning),
        verdict=_verdict(result),
        assumptions=_assumptions(sized),
        steps=[_step(each) for each in sized.steps],
        load=[shape.LoadChecked(code=each.code, numbers=dict(each.numbers)) for each in sized.load],
        permalink=sized.permalink,
        reason=None if reason is None else _reason(reason, sized.ways_out),
    )


def _model(sized: Sized) -> shape.ModelFacts:
    prepared = sized.prepared
    entry, request = prepared.model, prepared.request
    checkpoint = None if request is None else request.checkpoint
    reason = dict(prepared.reason.numbers) if prepared.reason else {}
    architecture = (
        str(reason.get("architecture", "")) if request is None else (request.model.architecture)
    )
    return shape.ModelFacts(
        slug=None if entry is None else entry.slug,
        name=architecture if entry is None else entry.name,
        hf_id=None if entry is None else entry.hf_id,
        architecture=architecture,
        num_hidden_layers=None if request is None else request.model.num_hidden_layers,
        checkpoint=(checkpoint.hf_id or None) if checkpoint else None,
        precision=checkpoint.precision if checkpoint else None,
        checkpoint_bytes=None if sized.result is None else sized.result.checkpoint_bytes,
        kv_cache_scheme=checkpoint.kv_cache_scheme if checkpoint else None,
        confidence=checkpoint.confidence if checkpoint else None,
    )


def _gpu(prepared: Prepared) -> shape.GpuFacts | None:
    spec = prepared.gpu
    if spec is None:
        return None
    given = prepared.answers.gpu_total_memory_bytes
    return shape.GpuFacts(
        slug=spec.slug or None,
        name=spec.name,
        driver_memory_bytes=spec.driver_memory_bytes,
        total_memory_bytes=spec.total_memory_bytes if given is None else given,
        compute_capability=capability_text(spec),
    )


def _layout(prepared: Prepared) -> shape.LayoutFacts:
    layout = layout_of(prepared.answers)
    server = prepared.server.slug if prepared.server else None
    return shape.LayoutFacts(**asdict(layout), cards=layout.cards, server=server)


def _engine_args(result: SizingResult | None) -> dict[str, shape.EngineValue]:
    """Return the resolved arguments under vLLM's names."""
    if result is None or result.resolved is None:
        return {}
    values = asdict(result.resolved)
    limits = values.pop("limit_mm_per_prompt")
    values["kv_cache_dtype"] = values.pop("cache_dtype")
    values["block_size"] = values.pop("user_block_size")
    return {**values, "limit_mm_per_prompt": None if limits is None else dict(limits)}


def _whole(bounds: Range) -> shape.WholeEnds:
    return shape.WholeEnds(low=int(bounds.low), likely=int(bounds.likely), high=int(bounds.high))


def _created_weights(result: SizingResult | None) -> int | None:
    """Bytes of the largest rank's tensors themselves; the term `weights` is what they take up."""
    if result is None or result.resolved is None:
        return None
    return max(parameter_bytes_per_rank(result.request, result.resolved))


def _spread(result: SizingResult | None) -> shape.Spread | None:
    if result is None or result.tokens_range is None or result.concurrency_range is None:
        return None
    return shape.Spread(
        kv_cache_size_tokens=_whole(result.tokens_range),
        max_concurrency=shape.Ends(**asdict(result.concurrency_range)),
        coverage=COVERAGE,
    )


def _planning(planning: Planning | None) -> shape.PlanningFigures | None:
    if planning is None:
        return None
    return shape.PlanningFigures(
        kv_cache_size_tokens=planning.kv_cache_size_tokens,
        max_concurrency=planning.max_concurrency,
        requests=planning.requests,
    )


def _verdict(result: SizingResult | None) -> shape.Verdict:
    requests = 0 if result is None else result.verdict_requests
    return shape.Verdict(requests=requests, fits=requests > 0)


def _assumptions(sized: Sized) -> list[shape.AssumptionMade]:
    made = (*sized.prepared.assumptions, *(sized.result.assumptions if sized.result else ()))
    return [shape.AssumptionMade(code=each.code, values=dict(each.values)) for each in made]


def _step(step: Step) -> shape.StepTaken:
    return shape.StepTaken(
        code=step.code,
        inputs=dict(step.inputs),
        result=step.result,
        unit=step.unit,
        source=step.source,
    )


def _reason(reason: Reason, ways_out: tuple[Way, ...]) -> shape.ReasonGiven:
    return shape.ReasonGiven(
        code=reason.code,
        vllm_error=reason.vllm_error,
        numbers=dict(reason.numbers),
        estimated_max_model_len=reason.estimated_max_model_len,
        ways_out=[_way_out(each) for each in ways_out],
    )


def _way_out(way: Way) -> shape.WayOut:
    cache = way.result.cache
    return shape.WayOut(
        change=dict(way.changes), max_concurrency=None if cache is None else cache.max_concurrency
    )
