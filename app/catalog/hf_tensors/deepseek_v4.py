"""DeepSeek-V4: compressed attention, hyper-connections, hashed routing in the first layers.

Source: vllm/models/deepseek_v4/ (0.32.0): attention.py, compressor.py, nvidia/model.py and
nvidia/mtp.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.catalog.hf_fields import Fields
from app.catalog.hf_tensors.blocks import Ends, Experts, ends, experts
from app.catalog.hf_tensors.decoder import Traits, decoder_shape, read_experts
from app.catalog.hf_tensors.layer import LayerTensors
from app.catalog.hf_tensors.rotary import rotary_cache
from app.catalog.hf_tensors.shape import LARGEST_COUNT, LARGEST_SIZE, Shape
from app.core.model_spec import LAST_STAGE, TensorGroup

# A layer of this ratio has an indexer, and its compressor overlaps two windows.
OVERLAPPING_RATIO = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of DeepSeek-V4 beyond those of every decoder."""

    hidden_size: int
    heads: int
    head_dim: int
    q_lora_rank: int
    o_lora_rank: int
    o_groups: int
    index_heads: int
    index_head_dim: int
    hc_mult: int
    vocab_size: int
    experts_per_token: int

    @property
    def hc_mix(self) -> int:
        """Rows of a layer's mixing function: (2 + streams) x streams."""
        return (2 + self.hc_mult) * self.hc_mult


def deepseek_v4(config: Fields, text: Fields, traits: Traits) -> list[TensorGroup]:
    """Tensor groups of DeepSeek-V4, its draft layers included."""
    shape = decoder_shape(config, text, traits)
    sizes, moe = _read_sizes(text, shape), read_experts(text, shape, traits)
    ratios = text.integers("compress_ratios", high=2**16)
    hashed = text.integer("num_hash_layers", 0, high=1024)
    groups = ends(
        Ends(
            shape.vocab_size,
            shape.hidden_size,
            shape.tie_word_embeddings,
            norm="norm",
            embed="embed",
        )
    )
    head = LayerTensors(LAST_STAGE)
    _hyper_head(head, sizes)
    groups += head.groups
    for index in range(shape.num_hidden_layers):
        layer = LayerTensors(index)
        ratio = ratios[index] if index < len(ratios) else 0
        _decoder_layer(layer, sizes, moe, ratio, hashed=index < hashed)
        groups += layer.groups
    for number in range(text.integer("num_nextn_predict_layers", 0, high=64)):
        position = shape.num_hidden_layers + number
        groups += _draft(sizes, moe, ratios[position] if position < len(ratios) else 0)
    return groups + _rotary_tables(text, ratios[: shape.num_hidden_layers])


def _rotary_tables(text: Fields, ratios: Sequence[int]) -> list[TensorGroup]:
    """One table for compressed layers, one for the others, which are neighbours at the start."""
    rope = text.integer("qk_rope_head_dim", 64, high=LARGEST_COUNT)
    table = rotary_cache(text, rope, whole=True, dtype="float32")
    plain = [index for index, ratio in enumerate(ratios) if ratio <= 1]
    if len(plain) == len(ratios):
        return table
    return table + [replace(each, layer=plain[0]) for each in table if plain]


def _read_sizes(text: Fields, shape: Shape) -> Sizes:
    def size(key: str, default: int | None = None) -> int:
        return text.integer(key, default, low=1, high=LARGEST_SIZE)

    return Sizes(
        hidden_size=shape.hidden_size,
        heads=shape.num_attention_heads,
        head_dim=size("head_dim"),
        q_lora_rank=size("q_lora_rank"),
        o_lora_rank=size("o_lora_rank"),
        o_groups=size("o_groups"),
        index_heads=size("index_n_heads", 64),
        index_head_dim=size("index_head_dim", 128),
        hc_mult=text.integer("hc_mult", 4, low=1, high=64),
        vocab_size=shape.vocab_size,
        experts_per_token=text.integer("num_experts_per_tok", 1, low=1, high=1024),
    )


def _decoder_layer(
    layer: LayerTensors, sizes: Sizes, moe: Experts | None, ratio: int, *, hashed: bool
) -> None:
    layer.norms(sizes.hidden_size, "attn_norm", "ffn_norm")
    for block in ("attn", "ffn"):
        width = sizes.hc_mult * sizes.hidden_size
        layer.vector(f"hc_{block}_fn", "norm", sizes.hc_mix * width, dtype="float32")
        layer.vector(f"hc_{block}_base", "norm", sizes.hc_mix, dtype="float32")
        layer.vector(f"hc_{block}_scale", "norm", 3, dtype="float32")
    _attention(layer, sizes)
    if ratio > 1:
        wide = 2 if ratio == OVERLAPPING_RATIO else 1
        _compressor(layer, "attn.compressor", sizes.hidden_size, sizes.head_dim, ratio, wide)
    if ratio == OVERLAPPING_RATIO:
        _indexer(layer, sizes, ratio)
    if moe:
        experts(layer, "ffn", moe)
        if hashed:
            rows = sizes.vocab_size * sizes.experts_per_token
            layer.vector("ffn.gate.tid2eid", "router", rows, dtype="int32")
        else:
            layer.vector("ffn.gate.bias", "router", moe.count, dtype="float32")


def _attention(layer: LayerTensors, sizes: Sizes) -> None:
    hidden, heads, q_rank = sizes.hidden_size, sizes.heads, sizes.q_lora_rank
    wide = heads * sizes.head_dim
    layer.vector("attn.attn_sink", "attn", heads, dtype="float32")
    layer.linear("attn.wq_a", "attn", (q_rank, hidden))
    layer.linear("attn.wkv", "attn", (sizes.head_dim, hidden))
    layer.norms(q_rank, "attn.q_norm")
    layer.norms(sizes.head_dim, "attn.kv_norm")
    layer.linear("attn.wq_b", "attn", (wide, q_rank), "column", units=heads)
    out = sizes.o_groups * sizes.o_lora_rank
    layer.linear("attn.wo_a", "attn", (out, wide // sizes.o_groups), "column", units=sizes.o_groups)
    layer.linear("attn.wo_b", "attn", (hidden, out), "row", units=sizes.o_groups)


def _compressor(
    layer: LayerTensors, name: str, hidden_size: int, head_dim: int, ratio: int, wide: int
) -> None:
    size = wide * head_dim
    layer.vector(f"{name}.ape", "norm", ratio * size, dtype="float32")
    layer.norms(head_dim, f"{name}.norm")
    for part in ("wkv", "wgate"):
        layer.plain(f"{name}.{part}", "attn", (size, hidden_size))


def _indexer(layer: LayerTensors, sizes: Sizes, ratio: int) -> None:
    name, width = "attn.indexer", sizes.index_heads * sizes.index_head_dim
    layer.linear(f"{name}.wq_b", "attn", (width, sizes.q_lora_rank))
    weights = (sizes.index_heads, sizes.hidden_size)
    layer.plain(f"{name}.weights_proj", "attn", weights)
    _compressor(layer, f"{name}.compressor", sizes.hidden_size, sizes.index_head_dim, ratio, 2)


def _hyper_head(layer: LayerTensors, sizes: Sizes) -> None:
    width = sizes.hc_mult * sizes.hidden_size
    layer.vector("hc_head_fn", "norm", sizes.hc_mult * width, dtype="float32")
    layer.vector("hc_head_base", "norm", sizes.hc_mult, dtype="float32")
    layer.vector("hc_head_scale", "norm", 1, dtype="float32")


def _draft(sizes: Sizes, moe: Experts | None, ratio: int) -> list[TensorGroup]:
    layer = LayerTensors(LAST_STAGE, "mtp", "mtp.")
    square = (sizes.hidden_size, sizes.hidden_size)
    for name in ("e_proj", "h_proj"):
        layer.linear(name, "mtp", square)
    layer.norms(sizes.hidden_size, "enorm", "hnorm", "norm")
    _hyper_head(layer, sizes)
    _decoder_layer(layer, sizes, moe, ratio, hashed=False)
    return layer.groups
