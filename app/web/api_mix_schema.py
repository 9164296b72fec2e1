"""The shape of what the API says about a request mix."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from app.web.api_schema import Shape, ShortReason


class RequestMixFacts(Shape):
    """Requests in flight over all engines at which preemption begins.

    `rarely`, `sometimes`, `often`: with a probability of at most 1 %, 5 %, 50 %. `curve` holds
    pairs of requests and probability.
    """

    rarely: int
    sometimes: int
    often: int
    batch_limit: int = Field(description="What --max-num-seqs admits.")
    requests: int = Field(description="The fewer of `rarely` and `batch_limit`.")
    first_limit: Literal["cache", "batch"]
    num_blocks: int = Field(description="Of one engine, at the cautious end.")
    mean_blocks: float = Field(description="What a request holds on average.")
    accepted: float = Field(description="Share of requests within the declared context.")
    sufficient_max_model_len: int = Field(description="Context that 999 of 1,000 keep to.")
    curve: list[tuple[int, float]]


class RequestMixAnswer(Shape):
    """How many requests of given lengths fit; `mix` is null where vLLM does not start.

    Also where no request keeps to the declared context, without a `reason`.
    """

    data_version: str
    mean_request_tokens: float | None
    mix: RequestMixFacts | None
    reason: ShortReason | None
