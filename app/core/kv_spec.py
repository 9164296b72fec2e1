"""What one layer keeps in the cache on one rank, and how many blocks of it a request takes.

Mirrors the KVCacheSpec classes of vllm/v1/kv_cache_interface.py as far as memory goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from app.core.units import ceil_div

SpecKind = Literal[
    "full_attention",
    "mla",
    "sliding_window",
    "sliding_window_mla",
    "chunked_local",
    "cross_attention",
    "mamba",
]
_FULL = frozenset({"full_attention", "mla"})


class RequestLength(NamedTuple):
    """What a request's blocks depend on.

    `max_model_len` tokens; `max_in_flight_tokens` are scheduled and not yet settled, so windows
    keep them too; `decode_context_parallel_size` ranks share the tokens of one request;
    `encoder_tokens` is the length of an encoder's output.
    """

    max_model_len: int
    max_in_flight_tokens: int
    decode_context_parallel_size: int = 1
    encoder_tokens: int = 0


@dataclass(frozen=True, slots=True)
class KvSpec:
    """The cache of one layer on one rank.

    block_size             tokens of one block
    state_bytes            bytes of one stored state: one token over the rank's heads, or several
                           tokens compressed into one; the whole page of a recurrent layer
    tokens_per_state       tokens that one stored state stands for; 0 for a recurrent layer
    window                 sliding window or chunk, tokens
    retained_tokens        kept below the window for drafts of several modules
    padded_page_bytes      bytes the page is padded to, None for no padding
    state_blocks           blocks a request takes in a recurrent layer, whatever its length
    state_every_block      and one for every block of tokens, where each keeps a state
    identity               what else must agree for two layers to be one kind
    """

    kind: SpecKind
    block_size: int
    state_bytes: int
    tokens_per_state: int = 1
    window: int | None = None
    retained_tokens: int = 0
    padded_page_bytes: int | None = None
    state_blocks: int = 0
    state_every_block: bool = False
    identity: tuple[int | str, ...] = ()

    @property
    def unpadded_page_bytes(self) -> int:
        """Bytes of one block of this layer, without padding."""
        if not self.tokens_per_state:
            return self.state_bytes
        return self.state_bytes * (self.block_size // self.tokens_per_state)

    @property
    def page_size_bytes(self) -> int:
        """Bytes of one block of this layer."""
        return self.padded_page_bytes or self.unpadded_page_bytes

    @property
    def is_full(self) -> bool:
        """True where every token of a request is kept."""
        return self.kind in _FULL

    def blocks_per_request(self, length: RequestLength) -> int:
        """Count the blocks that one request of that length takes at most."""
        tokens = length.max_model_len
        if self.kind == "mamba":
            every = ceil_div(tokens, self.block_size) if self.state_every_block else 0
            return self.state_blocks + every
        if self.kind in {"sliding_window", "sliding_window_mla"}:
            # A window may begin in the middle of a block: one block more.
            kept = (self.window or 1) - 1 + self.retained_tokens + length.max_in_flight_tokens
            return ceil_div(min(kept, tokens), self.block_size) + 1
        if self.kind == "chunked_local":
            kept = (self.window or 0) + length.max_in_flight_tokens
            return ceil_div(min(kept, tokens), self.block_size)
        if self.kind == "cross_attention":
            return ceil_div(length.encoder_tokens, self.block_size)
        return ceil_div(ceil_div(tokens, length.decode_context_parallel_size), self.block_size)

    def as_full_attention(self, block_size: int) -> KvSpec:
        """Keep every token, as vLLM does without its hybrid KV cache manager."""
        kind: SpecKind = "mla" if self.kind == "sliding_window_mla" else "full_attention"
        padded = self.padded_page_bytes
        promoted = replace(
            self, kind=kind, block_size=block_size, retained_tokens=0, padded_page_bytes=None
        )
        if padded is None:
            return promoted
        return replace(promoted, padded_page_bytes=max(padded, promoted.unpadded_page_bytes))
