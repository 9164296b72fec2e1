"""Ways out of a sizing that does not fit, as other answers, each sized before it is offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.reasons import Number
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.ways_out import Alternatives, could_hold, ways_out
from app.wizard.alternatives import alternatives_for
from app.wizard.answers import Answers
from app.wizard.sizing_request import UNSURE_MAX_MODEL_LEN, Prepared, to_request

Changes = Mapping[str, Number | bool | None]

# (tensor, pipeline) parallel sizes of a fresh start, the fewest cards first
FRESH_SPLITS: Final = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4))
KEPT_BY_A_FRESH_START: Final = frozenset(
    {
        "model", "revision", "hf_config", "hf_quant_config", "assume_plain_decoder",
        "hf_overrides", "vllm_version", "checkpoint", "gpu", "gpu_total_memory_bytes", "server",
        "max_model_len", "replicas", "peak_requests", "mean_request_tokens", "p95_request_tokens",
        "unsure",
    }
)  # fmt: skip
_DEFAULTS: Final = Answers()


@dataclass(frozen=True, slots=True)
class Way:
    """Answers that fit, and which of them differ; None takes an answer back."""

    changes: Changes
    answers: Answers
    result: SizingResult


def ways_out_of(prepared: Prepared, result: SizingResult, catalogue: Catalogue) -> tuple[Way, ...]:
    """Find changes after which the server starts and at least one request may be promised.

    Single changes first, as the core orders them. Where none is enough, one fresh start: the flags
    back to their defaults as far as needed, more cards, other files, other cards; the release last.
    """
    answers = prepared.answers
    others = alternatives_for(prepared, catalogue)
    found = (
        _tried(answers, _with_card(answers, dict(way.change)), catalogue)
        for way in ways_out(result, others)
    )
    ways = tuple(way for way in found if way is not None)
    return ways or tuple(_fresh_start(answers, others, catalogue))


def _with_card(answers: Answers, changes: Changes) -> Changes:
    """Take back what belongs to the present card, where another one is proposed."""
    if "gpu" not in changes:
        return changes
    tied = ("server", "gpu_total_memory_bytes")
    return {**changes, **{name: None for name in tied if getattr(answers, name) is not None}}


def _tried(answers: Answers, changes: Changes, catalogue: Catalogue) -> Way | None:
    changed = answers.with_changes(**changes)
    request = to_request(changed, catalogue).request
    if request is None or not could_hold(request):
        return None
    result = size(request)
    if not result.ok or not result.verdict_requests:
        return None
    return Way(changes, changed, result)


def _fresh_start(answers: Answers, others: Alternatives, catalogue: Catalogue) -> Iterator[Way]:
    resets: Changes = {
        each.name: getattr(_DEFAULTS, each.name)
        for each in fields(Answers)
        if each.name not in KEPT_BY_A_FRESH_START
        and getattr(answers, each.name) != getattr(_DEFAULTS, each.name)
    }
    usual = _DEFAULTS.vllm_version
    releases: list[Changes] = [{}]
    if answers.vllm_version != usual:
        releases.append({"vllm_version": usual})
    for release in releases:
        for changes in _fresh_changes(answers, others):
            fresh = {**resets, **_with_card(answers, changes), **release}
            way = _tried(answers, fresh, catalogue)
            if way is not None:
                yield _least(answers, way, catalogue)
                return


def _fresh_changes(answers: Answers, others: Alternatives) -> Iterator[Changes]:
    cards: list[Changes] = [{}, *({"gpu": each.slug} for each in others.gpus)]
    files: list[Changes] = [{}, *({"checkpoint": each.hf_id} for each in others.checkpoints)]
    lengths: list[Changes] = [{}, {"max_model_len": UNSURE_MAX_MODEL_LEN}, {"max_model_len": 2048}]
    for card in cards:
        for file in files:
            for tensor, pipeline in FRESH_SPLITS:
                split = {"tensor_parallel_size": tensor, "pipeline_parallel_size": pipeline}
                changed = {
                    name: value for name, value in split.items() if getattr(answers, name) != value
                }
                for length in lengths:
                    yield {**card, **file, **changed, **length}


def _least(answers: Answers, way: Way, catalogue: Catalogue) -> Way:
    """Leave out every change that is not needed."""
    for name in tuple(way.changes):
        fewer = {other: value for other, value in way.changes.items() if other != name}
        way = _tried(answers, fewer, catalogue) or way
    return way
