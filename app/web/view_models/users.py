"""From the printed figure to users: the numbers of the three checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.core.load import Load, check_load
from app.core.reasons import Number
from app.core.result import SizingResult
from app.core.sizing import size


@dataclass(frozen=True, slots=True)
class Users:
    """Declared length, measured load, and which limit comes first.

    `at_mean` is how many requests of the mean length fit, over all copies. `checks` maps the code
    of each check that could be made to the numbers it compared.
    """

    max_model_len: int
    is_derived: bool
    requests: int
    peak: int | None
    mean: int | None
    at_mean: int | None
    checks: Mapping[str, Mapping[str, Number]]


def users_of(result: SizingResult, load: Load) -> Users | None:
    """Work out the checks for a measured load, as far as it is known.

    None where vLLM refuses before it knows a length.
    """
    resolved, mean = result.resolved, load.mean_request_tokens
    if resolved is None:
        return None
    return Users(
        max_model_len=result.cache.max_model_len if result.cache else resolved.max_model_len,
        is_derived=result.request.engine_args.max_model_len is None,
        requests=result.verdict_requests,
        peak=load.peak_requests,
        mean=mean,
        at_mean=None if mean is None else _requests_at(result, mean),
        checks={check.code: dict(check.numbers) for check in check_load(result, load)},
    )


def _requests_at(result: SizingResult, length: int) -> int:
    """Return what may be promised of the same start for requests of another length."""
    args = replace(result.request.engine_args, max_model_len=length)
    return size(replace(result.request, engine_args=args)).verdict_requests
