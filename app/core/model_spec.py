"""A model: what each layer keeps in the cache, and which tensors it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["full_attention", "sliding_window", "chunked_local", "cross_attention"]
StateKind = Literal["mamba1", "mamba2", "gated_delta_net", "kda", "short_conv", "linear_attention"]
Sharding = Literal[
    "replicated",
    "column",
    "row",
    "kv_heads",
    "vocab",
    "expert",
    "expert_column",
    "expert_row",
    "shared_column",
    "shared_row",
]
EVERY_STAGE = -3
FIRST_STAGE = -1
LAST_STAGE = -2


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Key/value cache of one attention layer, before tensor parallelism.

    `window` is the sliding window or the chunk in tokens (None for full attention). `sinks` says
    that the layer has attention sinks, `index_head_dim` that it keeps index keys of that size
    beside its own (MiniMax-M3).
    """

    kind: AttentionKind
    num_kv_heads: int
    head_size: int
    head_size_v: int
    window: int | None = None
    sinks: bool = False
    index_head_dim: int | None = None


@dataclass(frozen=True, slots=True)
class MlaSpec:
    """Latent cache of one MLA layer: one vector a token, the same on every tensor-parallel rank.

    `index_head_dim` is set for sparse MLA (DeepSeek-V3.2, GLM-5): a second cache for the indexer,
    present when the layer has an indexer of its own.
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None
    sparse: bool = False


@dataclass(frozen=True, slots=True)
class StateSpec:
    """State of one recurrent layer: its size does not depend on the length of a request.

    Sizes are Hugging Face's, before tensor parallelism. `conv_dim` counts the channels of the
    convolution (for Mamba-2 without its groups; 0 where it follows from the heads), `conv_kernel`
    its length (0 for none). Gated delta net and KDA: key and value heads and dims. Mamba-2:
    `num_value_heads` heads of `value_head_dim`, state size `key_head_dim`, `num_groups`. Mamba-1:
    state size `key_head_dim`. Linear attention: `num_value_heads` heads of `value_head_dim`.
    `ssm_dtype` is the dtype the config asks for, None where it is the model's. `bounded_gate` is
    set for KDA whose gate has a lower bound (Kimi-K3). `chunk_size`: tokens that Mamba's kernels
    read at once.
    """

    kind: StateKind
    conv_kernel: int
    num_value_heads: int = 0
    value_head_dim: int = 0
    num_key_heads: int = 0
    key_head_dim: int = 0
    num_groups: int = 1
    conv_dim: int = 0
    ssm_dtype: str | None = None
    bounded_gate: bool = False
    chunk_size: int = 2048


@dataclass(frozen=True, slots=True)
class PackedSpec:
    """Caches of one DeepSeek-V4 layer, whose mixed pages vLLM packs into one block.

    `compress_ratio` is 0 for a layer with only its window, else tokens per compressed state.
    `index_head_dim` is set where the layer has an indexer (compress_ratio 4).
    """

    compress_ratio: int
    window: int
    head_size: int
    index_head_dim: int | None = None


CacheSpec = AttentionSpec | MlaSpec | StateSpec | PackedSpec


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One decoder layer; `cache` is None where it has none or shares another layer's.

    `beside` is a second cache of the same layer: the state beside the attention of Falcon-H1, the
    cross-attention of an encoder-decoder model.
    """

    cache: CacheSpec | None
    beside: CacheSpec | None = None


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """`count` equal tensors of shape [out_features, in_features] in one place of the model.

    name          Hugging Face's module path without indices, e.g. `self_attn.q_proj`.
    module        class that quantisation configs select by: attn, mlp, expert, shared, router,
                  embed, lm_head, norm, ssm, conv, vision, audio, mtp, buffer.
    layer         decoder layer the tensors belong to; FIRST_STAGE before the first (embeddings),
                  LAST_STAGE after the last (final norm, lm_head, drafts), EVERY_STAGE for what
                  each pipeline stage holds (rotary caches, towers).
    sharding      how tensor parallelism splits it:
                  column      rows of the matrix (out_features)
                  row         columns of the matrix (in_features)
                  kv_heads    out_features in `shard_units` heads, at least one a rank (replicated)
                  vocab       out_features padded to 64, then split
                  expert      whole matrices over the cards of expert parallelism, else replicated
                  expert_column, expert_row
                              one expert's out_features or in_features over all cards of an
                              engine; with expert parallelism whole experts instead
                  shared_column, shared_row
                              as column and row, but whole where vLLM runs the experts sequence
                              parallel (expert parallelism with tp > 1 and dp > 1)
    shard_units   heads or groups that cannot be split further (0: any size can).
    quantizable   True for the linear layers that quantisation may touch.
    part          what has to be switched on for it to be loaded:
                  model       always
                  mtp         a draft of the checkpoint's own; with speculative decoding only
                  mtp_shared  in the files with the draft, at run time the target's tensor
                  vision, audio
                              towers; unless `--language-model-only`
                  runtime     allocated by vLLM, in no file (rotary caches)
                  mrope_positions
                              the same, up to the release that stopped to allocate it
                  unused      in the files, never loaded
    dtype         in the files: None for the model's own, else one of DTYPE_BYTES.
    loaded_dtype  as vLLM's parameter, unquantised whatever the files say; None: as in the files.
    fallback_dtype
                  the same on cards without vLLM's router kernels (neither Hopper nor the SM100
                  family); None: as on these.
    least_share   intermediate size of an expert that tensor parallelism leaves a rank at least,
                  padded up to it (0: none).
    """

    name: str
    module: str
    layer: int
    out_features: int
    in_features: int
    count: int = 1
    sharding: Sharding = "replicated"
    shard_units: int = 0
    quantizable: bool = False
    part: str = "model"
    dtype: str | None = None
    loaded_dtype: str | None = None
    fallback_dtype: str | None = None
    least_share: int = 0


@dataclass(frozen=True, slots=True)
class LengthSpec:
    """What `--max-model-len` is derived from when it is absent.

    `keys` are the length keys present in the text config with their values; `rope_type`,
    `rope_factor` and `original_max_position_embeddings` come from its rope block.
    """

    keys: tuple[tuple[str, int], ...]
    rope_type: str | None = None
    rope_factor: float | None = None
    original_max_position_embeddings: int | None = None
    model_type: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """A model as read from its config. Compared by identity, so that caches can key on it.

    Sizes in elements; `dtype` is the dtype of unquantised tensors. `num_experts` is 0 for dense
    models. `multimodal` is True when vLLM would profile an encoder at start.
    """

    architecture: str
    model_type: str
    layers: tuple[LayerSpec, ...]
    tensors: tuple[TensorGroup, ...]
    length: LengthSpec
    dtype: str
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    tie_word_embeddings: bool
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    has_sinks: bool = False
    mm_prefix: bool = False
    multimodal: bool = False
    mtp_layers: tuple[LayerSpec, ...] = ()
    hidden_act: str = "silu"
    qk_nope_head_dim: int = 0
    v_head_dim: int = 0

    @property
    def num_hidden_layers(self) -> int:
        """Decoder layers, drafts not counted."""
        return len(self.layers)
