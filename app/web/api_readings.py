"""What was read from a pasted text, as the JSON API shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.reasons import Number
from app.core.units import GIB
from app.readings.comparison import ComparedTerm
from app.readings.findings import Finding
from app.readings.metrics_findings import find_in_metrics
from app.readings.metrics_page import MetricsReading
from app.readings.observation import LogReading, Observation
from app.readings.request_lengths import RequestLengths
from app.readings.stated_server import stated_server
from app.web import api_reading_schema as shape
from app.web.locale import Language
from app.web.measured_mix import answer_percent
from app.web.read_start import ReadStart, read_start, requests_of
from app.wizard.length_histogram import histogram_text
from app.wizard.permalink import permalink
from app.wizard.ways_out import Way

WORKED_OUT: Final = 8
_ROUNDED: Final = 4


def log_answer(reading: LogReading, catalogue: Catalogue, language: Language) -> shape.LogFound:
    """Work out the last starts of a log, and list what was read."""
    first = max(0, len(reading.starts) - WORKED_OUT)
    starts = [
        _read(read_start(start, catalogue), catalogue, language)
        if place >= first
        else _unread(start, catalogue)
        for place, start in enumerate(reading.starts)
    ]
    return shape.LogFound(
        starts=starts,
        starts_left_out=reading.starts_left_out,
        lines=[
            shape.LogLine(
                line=each.line, kind=each.kind, values=dict(each.values), start=each.start
            )
            for each in reading.lines
        ],
        complete=reading.complete,
    )


def metrics_answer(reading: MetricsReading) -> shape.MetricsFound:
    """List engines, verdict and findings of a metrics page."""
    verdict = reading.verdict
    return shape.MetricsFound(
        engines=[
            shape.EngineFound(engine=each.engine, model=each.model, **_stated(each, {"engine"}))
            for each in reading.engines
        ],
        verdict=None
        if verdict is None
        else shape.MetricsVerdict(
            code=verdict.code, numbers=dict(verdict.numbers), first_limit=verdict.first_limit
        ),
        findings=[
            shape.MetricsFinding(code=each.code, severity=each.severity, numbers=dict(each.numbers))
            for each in find_in_metrics(reading)
        ],
        change=None if reading.change is None else shape.Named(**_stated(reading.change, ())),
        request_lengths=None if reading.lengths is None else _lengths(reading.lengths),
        problems=[shape.MetricsNote(line=each.line, code=each.code) for each in reading.problems],
    )


def _lengths(found: RequestLengths) -> shape.RequestLengths:
    return shape.RequestLengths(
        upper_bounds=list(found.upper_bounds),
        counts=list(found.counts),
        answer_percent=answer_percent(found),
        length_histogram=histogram_text(found.upper_bounds, found.counts),
    )


def _unread(start: Observation, catalogue: Catalogue) -> shape.StartFound:
    stated = stated_server(start, catalogue)
    slug = stated.inputs.get("model")
    return _start(
        start, slug if isinstance(slug, str) else None, stated.gpu_candidates, stated.gaps
    )


def _read(read: ReadStart, catalogue: Catalogue, language: Language) -> shape.StartFound:
    slug = read.prepared.answers.model
    found = _start(read.start, slug, read.stated.gpu_candidates, read.stated.gaps, read.ways_out)
    link = None
    if read.answers is not None:
        link = permalink(read.answers, language, catalogue.data_version)
    return found.model_copy(
        update={
            "findings": [_finding(each) for each in read.findings],
            "compared": [_compared(each) for each in read.compared],
            "permalink": link,
        }
    )


def _start(
    start: Observation,
    slug: str | None,
    candidates: tuple[str, ...],
    gaps: Iterable[str],
    ways_out: Iterable[Way] = (),
) -> shape.StartFound:
    alone = len(candidates) == 1
    failure = start.failure
    return shape.StartFound(
        vllm_version=start.vllm_version,
        vllm_version_at_least=start.vllm_version_at_least,
        vllm_version_at_most=start.vllm_version_at_most,
        engine=start.engine,
        model=start.model,
        model_slug=slug,
        gpu=candidates[0] if alone else None,
        gpu_candidates=[] if alone else list(candidates),
        tensor_parallel_size=start.tensor_parallel_size,
        pipeline_parallel_size=start.pipeline_parallel_size,
        data_parallel_size=start.data_parallel_size,
        decode_context_parallel_size=start.decode_context_parallel_size,
        enable_expert_parallel=start.enable_expert_parallel,
        engine_args=shape.Named(**start.engine_args),
        observed=shape.Named(**_stated(start.observed, ())),
        failure=None
        if failure is None
        else shape.FailureFound(
            code=failure.code,
            line=failure.line,
            stage=failure.stage,
            ways_out=[
                shape.FailureWay(change=dict(way.changes), requests=requests_of(way))
                for way in ways_out
            ],
            **failure.numbers,
        ),
        findings=[],
        compared=[],
        gaps=list(gaps),
        permalink=None,
    )


def _stated(figures: object, left_out: Iterable[str]) -> dict[str, object]:
    """Keep the figures that the text states; what is absent is left out."""
    skipped = {"model", *left_out}
    named = {
        each.name: getattr(figures, each.name)
        for each in fields(figures)  # type: ignore[arg-type]
        if each.name not in skipped
    }
    return {
        name: {key: dict(inner) if isinstance(inner, Mapping) else inner
               for key, inner in value.items()} if isinstance(value, Mapping) else value
        for name, value in named.items()
        if value is not None and value != {}
    }  # fmt: skip


def _finding(found: Finding) -> shape.FindingFound:
    effect = found.effect
    return shape.FindingFound(
        code=found.code,
        severity=found.severity,
        numbers=dict(found.numbers),
        change=dict(found.change),
        effect=None
        if effect is None
        else shape.Effect(
            kv_cache_size_tokens=(effect.tokens_before, effect.tokens_after),
            max_concurrency=(effect.concurrency_before, effect.concurrency_after),
        ),
    )


def _compared(term: ComparedTerm) -> shape.ComparedFigure:
    unit = GIB if term.unit == "bytes" else 1

    def shown(value: float) -> float:
        return round(value / unit, _ROUNDED)

    cause = term.likely_cause
    numbers: dict[str, Number] = {} if cause is None else dict(cause.numbers)
    return shape.ComparedFigure(
        term=term.term,
        unit="GiB" if term.unit == "bytes" else term.unit,
        predicted=shown(term.predicted),
        low=shown(term.low),
        high=shown(term.high),
        printed=shown(term.printed),
        difference=shown(term.difference),
        likely_cause=None if cause is None else cause.code,
        cause_numbers=numbers,
    )
