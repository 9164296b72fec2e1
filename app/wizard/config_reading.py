"""What a pasted config.json says: layers by kind, bytes of the cache, weights by part.

Needs no card: everything here follows from the config and its quantisation alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.core.checkpoint import Checkpoint
from app.core.kv_dtypes import element_bytes, head_bytes
from app.core.model_spec import (
    AttentionSpec,
    CacheSpec,
    LayerSpec,
    MlaSpec,
    ModelSpec,
    PackedSpec,
    StateSpec,
    TensorGroup,
)
from app.core.parameters import SchemeBook, stored_scheme
from app.core.storage_schemes import UNQUANTIZED

# Parts of a model that are in no file.
NOT_STORED: Final = frozenset({"runtime", "mrope_positions"})
# Classes of tensors in recurrent layers.
RECURRENT: Final = {"ssm_ba": "ssm", "conv": "ssm", "buffer": "ssm"}
# One index key in FP8 with its scale: vllm/v1/attention/backends/mla/indexer.py
INDEX_SCALE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers that keep the same cache.

    `kind` is a kind of the model spec, `mla`, `sparse_mla`, `packed` or `none`. `bytes_per_token`
    are those of one layer in 16 bit and in the dtype the checkpoint declares; None where the size
    does not grow with the tokens or is not a plain product.
    """

    kind: str
    layers: int
    kv_heads: int | None = None
    head_size: int | None = None
    window: int | None = None
    bytes_per_token: int | None = None
    declared_bytes_per_token: int | None = None


@dataclass(frozen=True, slots=True)
class WeightPart:
    """Tensors of one class or optional part that are stored the same way.

    `part` is a class of tensors (attn, mlp, expert, embed ...) or an optional part (mtp, vision,
    audio, unused). `scheme` is a storage scheme, or the dtype of what is not quantised.
    """

    part: str
    scheme: str
    is_quantized: bool
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """Everything read. Bytes per token are those of all layers that grow with every token."""

    model: ModelSpec
    checkpoint: Checkpoint
    kinds: tuple[LayerKind, ...]
    parts: tuple[WeightPart, ...]
    bytes_per_token: int
    declared_bytes_per_token: int | None

    @property
    def stored_bytes(self) -> int:
        """Bytes of the files."""
        return sum(part.bytes for part in self.parts)

    @property
    def elements(self) -> int:
        """Elements in the files."""
        return sum(part.elements for part in self.parts)

    @property
    def is_latent(self) -> bool:
        """Whether the cache holds latent vectors, so that KV heads say nothing about it."""
        return any(kind.kind in {"mla", "sparse_mla", "packed"} for kind in self.kinds)

    @property
    def windowed(self) -> bool:
        """Whether some layers keep only a window or a state."""
        return any(kind.window or kind.bytes_per_token is None for kind in self.kinds)


def read_parts(model: ModelSpec, checkpoint: Checkpoint) -> ConfigReading:
    """Describe a model and its checkpoint."""
    declared = checkpoint.kv_cache_scheme
    kinds = _kinds(model, declared)
    growing = [kind for kind in kinds if kind.bytes_per_token is not None and kind.window is None]
    return ConfigReading(
        model=model,
        checkpoint=checkpoint,
        kinds=kinds,
        parts=_parts(model, checkpoint),
        bytes_per_token=sum(kind.layers * (kind.bytes_per_token or 0) for kind in growing),
        declared_bytes_per_token=(
            sum(kind.layers * (kind.declared_bytes_per_token or 0) for kind in growing)
            if declared
            else None
        ),
    )


def _kinds(model: ModelSpec, declared: str | None) -> tuple[LayerKind, ...]:
    caches: Counter[CacheSpec | None] = Counter()
    for layer in model.layers:
        caches.update(_caches(layer))
    return tuple(
        _kind(cache, count, model.dtype, declared) for cache, count in caches.most_common()
    )


def _caches(layer: LayerSpec) -> Iterable[CacheSpec | None]:
    return (layer.cache,) if layer.beside is None else (layer.cache, layer.beside)


def _kind(
    cache: CacheSpec | None, layers: int, model_dtype: str, declared: str | None
) -> LayerKind:
    match cache:
        case AttentionSpec():
            return LayerKind(
                kind=cache.kind,
                layers=layers,
                kv_heads=cache.num_kv_heads,
                head_size=cache.head_size,
                window=cache.window,
                bytes_per_token=_attention_bytes(cache, "auto", model_dtype),
                declared_bytes_per_token=_attention_bytes(cache, declared or "auto", model_dtype),
            )
        case MlaSpec():
            return LayerKind(
                kind="sparse_mla" if cache.sparse else "mla",
                layers=layers,
                head_size=cache.kv_lora_rank + cache.qk_rope_head_dim,
                bytes_per_token=_latent_bytes(cache, "auto", model_dtype),
                declared_bytes_per_token=_latent_bytes(cache, declared or "auto", model_dtype),
            )
        case StateSpec():
            return LayerKind(cache.kind, layers)
        case PackedSpec():
            return LayerKind("packed", layers, window=cache.window)
        case None:
            return LayerKind("none", layers)


def _attention_bytes(cache: AttentionSpec, dtype: str, model_dtype: str) -> int:
    return cache.num_kv_heads * head_bytes(dtype, model_dtype, cache.head_size, cache.head_size_v)


def _latent_bytes(cache: MlaSpec, dtype: str, model_dtype: str) -> int:
    latent = cache.kv_lora_rank + cache.qk_rope_head_dim
    index = 0 if cache.index_head_dim is None else cache.index_head_dim + INDEX_SCALE_BYTES
    return latent * element_bytes(dtype, model_dtype) + index


def _parts(model: ModelSpec, checkpoint: Checkpoint) -> tuple[WeightPart, ...]:
    """Sum the tensors of the files by class or part and by how they are stored, largest first."""
    book = SchemeBook(checkpoint.quantization)
    elements: Counter[tuple[str, str, bool]] = Counter()
    sizes: Counter[tuple[str, str, bool]] = Counter()
    kept = frozenset({"model", "unused"}) | checkpoint.includes
    for group in model.tensors:
        if group.part in NOT_STORED or group.part not in kept:
            continue
        name = book.name(group)
        key = (_part_of(group), _stored_as(group, name, model.dtype), name != UNQUANTIZED)
        scheme = stored_scheme(group, name, model.dtype)
        elements[key] += group.count * group.out_features * group.in_features
        sizes[key] += group.count * scheme.stored_bytes(group.out_features, group.in_features)
    return tuple(
        WeightPart(part, scheme, quantized, elements[part, scheme, quantized], size)
        for (part, scheme, quantized), size in sizes.most_common()
    )


def _part_of(group: TensorGroup) -> str:
    """Name the optional part, else the class; what quantisation tells apart is one part here."""
    if group.part != "model":
        return group.part
    return RECURRENT.get(group.module, group.module)


def _stored_as(group: TensorGroup, name: str, dtype: str) -> str:
    return (group.dtype or dtype) if name == UNQUANTIZED else name
