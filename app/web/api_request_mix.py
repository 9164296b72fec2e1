"""The request mix of the JSON API: how many requests of given lengths one server holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

from app.core.reasons import Reason
from app.core.request_mix import RequestMix, request_mix
from app.core.result import SizingResult
from app.core.workload import Workload, histogram_workload, lognormal_workload
from app.web import api_mix_schema as shape
from app.web.api_input import read_query, with_problems
from app.web.api_matrix import short_reason
from app.web.api_parameters import parameters
from app.web.need_form import HISTOGRAM, read_lengths, read_numbers
from app.wizard.answers import ParsedAnswers, Problem
from app.wizard.length_histogram import MAX_LENGTH, LengthHistogram
from app.wizard.presets import PRESETS

MIX_NAMES: Final = (HISTOGRAM, "answer_percent", "shared_prefix_tokens")


@dataclass(frozen=True, slots=True)
class MixQuery:
    """The inputs of a sizing, and the lengths of its requests; None where no length is given."""

    parsed: ParsedAnswers
    workload: Workload | None


def read_mix_query(pairs: Iterable[tuple[str, str]]) -> MixQuery:
    """Read a query: counted lengths, else a mean with or without a 95th percentile."""
    given = [pair for pair in pairs if pair[1].strip()]
    texts = {name: text for name, text in given if name in MIX_NAMES}
    problems: list[Problem] = [
        Problem("repeated", name, "")
        for name in MIX_NAMES
        if len({text for other, text in given if other == name}) > 1
    ]
    numbers = read_numbers(texts, "en", problems)
    lengths = read_lengths(texts, problems)
    parsed = read_query(pair for pair in given if pair[0] not in MIX_NAMES)
    if HISTOGRAM not in texts and "mean_request_tokens" not in parsed.raw:
        problems.append(Problem("missing", HISTOGRAM, ""))
    return MixQuery(with_problems(parsed, problems), _workload(parsed, lengths, numbers))


def mix_answer(
    sized: SizingResult | Reason, workload: Workload, data_version: str
) -> shape.RequestMixAnswer:
    """Describe the mix on a server, or the reason for which there is none."""
    reason = sized if isinstance(sized, Reason) else sized.reason
    found = None
    if reason is None and not isinstance(sized, Reason):
        found = request_mix(sized, workload)
    return shape.RequestMixAnswer(
        data_version=data_version,
        mean_request_tokens=workload.mean_tokens(),
        mix=None if found is None else _facts(found),
        reason=None if reason is None else short_reason(reason),
    )


def mix_parameters() -> list[dict[str, Any]]:
    """Describe the query: every input of a sizing, and the lengths."""
    described = {
        HISTOGRAM: (
            "Requests up to each length, ascending, as `1000:12,2000:40`; counts before a mean.",
            {"type": "string", "maxLength": MAX_LENGTH},
        ),
        "answer_percent": (
            f"Generated part of every request; left out: {PRESETS[0].answer_percent}.",
            {"type": "number", "minimum": 0.1, "maximum": 99},
        ),
        "shared_prefix_tokens": (
            "First tokens that all requests have in common; left out: 0.",
            {"type": "integer", "minimum": 0, "maximum": 10_000_000},
        ),
    }
    return [
        *parameters(),
        *(
            {"name": name, "in": "query", "required": False, "description": text, "schema": schema}
            for name, (text, schema) in described.items()
        ),
    ]


def _workload(
    parsed: ParsedAnswers, lengths: LengthHistogram | None, numbers: dict[str, float]
) -> Workload | None:
    share = numbers.get("answer_percent", PRESETS[0].answer_percent) / 100
    prefix = int(numbers.get("shared_prefix_tokens", 0))
    if lengths is not None:
        return histogram_workload(lengths.upper_bounds, lengths.counts, share, prefix)
    mean = parsed.answers.mean_request_tokens
    if mean is None:
        return None
    p95 = parsed.answers.p95_request_tokens or mean
    return lognormal_workload(max(2, mean), max(2, p95), share, prefix)


def _facts(mix: RequestMix) -> shape.RequestMixFacts:
    stated = {each.name: getattr(mix, each.name) for each in fields(mix)}
    return shape.RequestMixFacts(
        **{**stated, "curve": list(mix.curve)},
        requests=mix.requests,
        first_limit=mix.first_limit,
    )
