"""Answers plus catalogue: the request that `core.size()` answers, or what keeps it from one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from app.catalog.catalogue import Catalogue
from app.catalog.model_search import find_model
from app.catalog.models import CatalogueModel
from app.catalog.releases import Releases, UnknownReleaseError
from app.catalog.servers import Server
from app.core.gpu_spec import GpuSpec
from app.core.load import Load
from app.core.reasons import Reason, Refusal
from app.core.releases import Release
from app.core.request import Measured, SizingRequest
from app.core.result import Assumption
from app.core.sizing import size
from app.core.units import GIB
from app.wizard.answers import DEFAULT_VLLM_VERSION, Answers, Problem, parse_answers
from app.wizard.card_choice import CardChoice, choose_card, layout_of, server_assumptions
from app.wizard.engine_args import read_engine_args
from app.wizard.model_choice import ModelChoice, UnusableAnswerError, choose_model
from app.wizard.permalink import text_of
from app.wizard.readers import canonical_json

UNSURE_MAX_MODEL_LEN: Final = 8192
UNSURE_TENSOR_PARALLEL_SIZES: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the answers mean. With `request` set it can be sized.

    Without one there are `problems` (entries to mend) or a `reason` (a model that this site does
    not know how to size: an answer, not a fault). `answers` have "I am not sure" replaced by the
    documented defaults, each named in `assumptions`.
    """

    answers: Answers
    request: SizingRequest | None = None
    problems: tuple[Problem, ...] = ()
    reason: Reason | None = None
    assumptions: tuple[Assumption, ...] = ()
    model: CatalogueModel | None = None
    gpu: GpuSpec | None = None
    server: Server | None = None


@dataclass(slots=True)
class _Findings:
    """What was found so far, so that every problem is named and not the first alone."""

    problems: list[Problem] = field(default_factory=list)
    reason: Reason | None = None


def to_request(answers: Answers, catalogue: Catalogue) -> Prepared:
    """Choose model, checkpoint, card and release, and put the request together. Never raises."""
    findings, read_on = _Findings(), _Findings()
    taken_on = _taken_on(answers, catalogue, read_on)
    answers = _on_this_card(answers, taken_on, catalogue)
    model = _model(answers, catalogue, findings)
    card = _card(answers, catalogue, findings)
    release, release_assumptions = _release(answers, catalogue.releases, findings)
    findings.problems.extend(read_on.problems)
    kv_dtypes = frozenset().union(*(row.kv_cache_dtypes for row in catalogue.releases.rows))
    engine_args, problems = read_engine_args(answers, kv_dtypes)
    findings.problems.extend(problems)
    if findings.problems or model is None or card is None or release is None:
        reason = None if findings.problems else findings.reason
        return Prepared(
            answers, None, tuple(findings.problems), reason,
            model=_entry(answers, catalogue),
            gpu=None if card is None else card.gpu,
            server=None if card is None else card.server,
        )  # fmt: skip
    request = SizingRequest(
        model=model.spec,
        checkpoint=model.checkpoint,
        gpu=card.gpu,
        release=release,
        layout=layout_of(answers),
        engine_args=engine_args,
        measured=replace(measured_of(answers), taken_on=taken_on),
        gpu_total_memory_bytes=answers.gpu_total_memory_bytes,
        other_processes_bytes=round(answers.other_processes_gib * GIB),
    )
    request, unsure = _without_doubt(request, answers)
    return Prepared(
        answers=_settled(answers, request),
        request=request,
        assumptions=(
            *model.assumptions,
            *card.assumptions,
            *release_assumptions,
            *unsure,
            *server_assumptions(request.layout, card.server),
        ),
        model=model.entry,
        gpu=card.gpu,
        server=card.server,
    )


def measured_of(answers: Answers) -> Measured:
    """Return the terms that were read from a start log, in bytes."""

    def in_bytes(gib: float | None) -> int | None:
        return None if gib is None else round(gib * GIB)

    return Measured(
        weights_bytes=in_bytes(answers.measured_weights_gib),
        peak_activation_bytes=in_bytes(answers.measured_peak_activation_gib),
        non_torch_bytes=in_bytes(answers.measured_non_torch_gib),
        cudagraph_bytes=in_bytes(answers.measured_cudagraph_gib),
        available_kv_cache_memory_bytes=answers.available_kv_cache_memory_bytes,
    )


def _taken_on(answers: Answers, catalogue: Catalogue, findings: _Findings) -> SizingRequest | None:
    """Return the server that the measured terms were read on; None where none is named."""
    if answers.measured_on is None:
        return None
    stated = json.loads(answers.measured_on).items()
    pairs = (
        (name, canonical_json(value) if isinstance(value, dict) else text_of(value))
        for name, value in stated
        if name != "measured_on"
    )
    parsed = parse_answers(pairs)
    there = to_request(parsed.answers, catalogue)
    problems = (*parsed.problems, *there.problems)
    if there.request is not None and not problems:
        return replace(there.request, measured=Measured())
    key = problems[0].field if problems else "model"
    findings.problems.append(
        Problem("object_value", "measured_on", answers.measured_on, (("key", key),))
    )
    return None


def _on_this_card(
    answers: Answers, taken_on: SizingRequest | None, catalogue: Catalogue
) -> Answers:
    """Take back what vLLM saw of the card in the log, once another card is chosen."""
    seen = answers.gpu_total_memory_bytes
    if taken_on is None or seen is None or seen != taken_on.gpu_total_memory_bytes:
        return answers
    try:
        card = choose_card(answers, catalogue)
    except UnusableAnswerError:
        return answers
    if card.gpu.slug == taken_on.gpu.slug:
        return answers
    return answers.with_changes(gpu_total_memory_bytes=None)


def load_of(answers: Answers) -> Load:
    """Return the measured load, for the three checks."""
    return Load(answers.peak_requests, answers.mean_request_tokens, answers.p95_request_tokens)


def _entry(answers: Answers, catalogue: Catalogue) -> CatalogueModel | None:
    found = find_model(catalogue.models, answers.model or "")
    return None if found is None else found.model


def _model(answers: Answers, catalogue: Catalogue, findings: _Findings) -> ModelChoice | None:
    try:
        return choose_model(answers, catalogue)
    except UnusableAnswerError as error:
        findings.problems.append(error.problem)
    except Refusal as refusal:
        findings.reason = refusal.reason
    return None


def _card(answers: Answers, catalogue: Catalogue, findings: _Findings) -> CardChoice | None:
    try:
        return choose_card(answers, catalogue)
    except UnusableAnswerError as error:
        findings.problems.append(error.problem)
    return None


def _release(
    answers: Answers, releases: Releases, findings: _Findings
) -> tuple[Release | None, tuple[Assumption, ...]]:
    asked = answers.vllm_version
    try:
        release, notice = releases.release_for(asked)
    except UnknownReleaseError:
        numbers = (("nearest", DEFAULT_VLLM_VERSION),)
        findings.problems.append(Problem("unknown_release", "vllm_version", asked, numbers))
        return None, ()
    values = (("asked", asked), ("used", release.version))
    if notice:
        return release, (Assumption(f"release_{notice}", values),)
    if asked == DEFAULT_VLLM_VERSION:
        return release, (Assumption("default_release", (("vllm_version", asked),)),)
    return release, ()


def _without_doubt(
    request: SizingRequest, answers: Answers
) -> tuple[SizingRequest, tuple[Assumption, ...]]:
    """Put the documented default in the place of every "I am not sure" that is left."""
    assumptions: list[Assumption] = []
    if "kv_cache_dtype" in answers.unsure:
        assumptions.append(_not_sure("kv_cache_dtype", "auto"))
    if "max_model_len" in answers.unsure:
        lengths = (length for _, length in request.model.length.keys)
        length = min([UNSURE_MAX_MODEL_LEN, *lengths])
        args = replace(request.engine_args, max_model_len=length)
        request = replace(request, engine_args=args)
        assumptions.append(_not_sure("max_model_len", length))
    if "tensor_parallel_size" in answers.unsure:
        request = _smallest_that_fits(request)
        size_chosen = request.layout.tensor_parallel_size
        assumptions.append(_not_sure("tensor_parallel_size", size_chosen))
    return request, tuple(assumptions)


def _smallest_that_fits(request: SizingRequest) -> SizingRequest:
    """Return the request with the fewest cards a copy can be split over so that one request fits.

    Where none fits, one card: its answer says why and what to do.
    """
    for each in _splits(request):
        if size(each).verdict_requests:
            return each
    return request


def _splits(request: SizingRequest) -> Iterator[SizingRequest]:
    for tensor_parallel_size in UNSURE_TENSOR_PARALLEL_SIZES:
        layout = replace(request.layout, tensor_parallel_size=tensor_parallel_size)
        yield replace(request, layout=layout)


def _settled(answers: Answers, request: SizingRequest) -> Answers:
    """Return the answers with what stands in the request for each unsure one."""
    settled: Mapping[str, object] = {
        "checkpoint": request.checkpoint.hf_id,
        "gpu": request.gpu.slug,
        "tensor_parallel_size": request.layout.tensor_parallel_size,
        "max_model_len": request.engine_args.max_model_len,
        "kv_cache_dtype": request.engine_args.kv_cache_dtype,
    }
    return answers.with_changes(**{name: settled[name] for name in answers.unsure})


def _not_sure(name: str, value: int | str) -> Assumption:
    return Assumption("not_sure", (("field", name), ("value", value)))
