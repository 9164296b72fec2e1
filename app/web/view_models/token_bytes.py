"""What one token and one request cost in the cache, and which layers pay for it."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.kv_dtypes import element_bytes
from app.core.model_spec import AttentionSpec
from app.core.sizing import SizingResult
from app.web.view_models.verdict import request_bytes


@dataclass(frozen=True, slots=True)
class Formula:
    """2 x layers x KV heads x head size x bytes of an element: full attention in every layer."""

    layers: int
    kv_heads: int
    head_size: int
    element_bytes: float

    @property
    def element_decimals(self) -> int:
        """Decimals that show the bytes of an element exactly."""
        return 0 if self.element_bytes == int(self.element_bytes) else 4


@dataclass(frozen=True, slots=True)
class GroupShare:
    """One cache group's part of a request on all cards of a copy.

    `start` and `width` are its place in the picture, in percent.
    """

    kind: str
    num_layers: int
    block_size: int
    blocks_per_request: int
    bytes: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Bytes over all cards of a copy. `copied_heads` is set where cards hold copies of KV heads.

    `is_even` where every token costs the same; `latent_copies` is how many cards hold the same
    latent cache, 1 where none does.
    """

    per_token: float
    request_bytes: int
    max_model_len: int
    cache_dtype: str
    tensor_parallel_size: int
    formula: Formula | None
    copied_heads: int | None
    is_even: bool
    latent_copies: int
    groups: tuple[GroupShare, ...]


def token_bytes_of(result: SizingResult) -> TokenBytes | None:
    """Return the costs; None where vLLM refuses before the cache has a shape."""
    total = request_bytes(result)
    resolved = result.resolved
    if total is None or resolved is None:
        return None
    length = result.cache.max_model_len if result.cache else resolved.max_model_len
    tensor_parallel_size = result.request.layout.tensor_parallel_size
    formula = _formula(result)
    copied = None
    if formula is not None:
        per_token = 2.0 * formula.layers * formula.kv_heads * formula.head_size
        per_token *= formula.element_bytes
        if formula.kv_heads < tensor_parallel_size:
            copied = formula.kv_heads
    else:
        per_token = total / length
    return TokenBytes(
        per_token=per_token,
        request_bytes=total,
        max_model_len=length,
        cache_dtype=resolved.stored_cache_dtype,
        tensor_parallel_size=tensor_parallel_size,
        formula=formula,
        copied_heads=copied,
        is_even=formula is not None or _is_all_latent(result),
        latent_copies=_latent_copies(result),
        groups=_groups(result),
    )


def _formula(result: SizingResult) -> Formula | None:
    """Return the factors where every layer keeps the same full attention."""
    resolved = result.resolved
    caches = {layer.cache for layer in result.request.model.layers}
    cache = next(iter(caches), None)
    if len(caches) != 1 or not isinstance(cache, AttentionSpec) or resolved is None:
        return None
    if cache.kind != "full_attention" or cache.head_size != cache.head_size_v:
        return None
    size = element_bytes(resolved.cache_dtype, resolved.dtype)
    return Formula(
        result.request.model.num_hidden_layers, cache.num_kv_heads, cache.head_size, size
    )


def _is_all_latent(result: SizingResult) -> bool:
    """Whether every layer keeps a latent cache of each token."""
    groups = result.cache.groups if result.cache else ()
    return bool(groups) and all(group.kind == "mla" for group in groups)


def _latent_copies(result: SizingResult) -> int:
    layout = result.request.layout
    if not _is_all_latent(result):
        return 1
    return layout.tensor_parallel_size // layout.decode_context_parallel_size


def _groups(result: SizingResult) -> tuple[GroupShare, ...]:
    if result.cache is None:
        return ()
    cards = result.request.layout.tensor_parallel_size
    sizes = [
        group.page_size_bytes * group.num_layers * group.blocks_per_request * cards
        for group in result.cache.groups
    ]
    total = sum(sizes) or 1
    shares = []
    start = 0.0
    for group, size in zip(result.cache.groups, sizes, strict=True):
        width = 100 * size / total
        shares.append(
            GroupShare(
                group.kind, group.num_layers, group.block_size, group.blocks_per_request, size,
                start=round(start, 3), width=round(width, 3),
            )
        )  # fmt: skip
        start += width
    return tuple(shares)
