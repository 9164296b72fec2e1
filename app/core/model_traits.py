"""What the defaults ask of a model, worked out once for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.core.model_spec import AttentionSpec, MlaSpec, ModelSpec, PackedSpec, StateSpec

_KEEPS_EVERY_STATE = frozenset({"mamba1", "mamba2"})


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Facts about the layers of a model.

    recurrent           some layer keeps a state
    hybrid              and some layer attends
    latent              attention is MLA (also where DeepSeek-V4 packs it)
    packed              it is DeepSeek-V4's
    encoder_decoder     some layer attends to an encoder's output
    keeps_every_state   its kernels can keep the state of every block
    named_attention     the config says which layers of a hybrid attend
    mamba_groups        groups of its Mamba-2 layers, 0 for none
    """

    recurrent: bool
    hybrid: bool
    latent: bool
    packed: bool
    encoder_decoder: bool
    keeps_every_state: bool
    named_attention: bool
    mamba_groups: int


@lru_cache(maxsize=1024)
def model_traits(model: ModelSpec) -> ModelTraits:
    """Look through the layers of a model."""
    caches = [
        cache
        for layer in model.layers
        for cache in (layer.cache, layer.beside)
        if cache is not None
    ]
    states = [cache for cache in caches if isinstance(cache, StateSpec)]
    attention = [cache for cache in caches if not isinstance(cache, StateSpec)]
    beside = any(isinstance(layer.beside, StateSpec) for layer in model.layers)
    return ModelTraits(
        recurrent=bool(states),
        hybrid=bool(states) and bool(attention),
        latent=any(isinstance(cache, MlaSpec | PackedSpec) for cache in attention),
        packed=any(isinstance(cache, PackedSpec) for cache in attention),
        encoder_decoder=any(
            isinstance(cache, AttentionSpec) and cache.kind == "cross_attention"
            for cache in attention
        ),
        keeps_every_state=bool(states) and all(s.kind in _KEEPS_EVERY_STATE for s in states),
        named_attention=not beside and all(state.kind != "kda" for state in states),
        mamba_groups=max((s.num_groups for s in states if s.kind == "mamba2"), default=0),
    )
