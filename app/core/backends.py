"""Which attention backend serves a layer, or why none does.

The backends and the order in which they are tried are rows of `data/vllm/backends.toml`.
Source: vllm/platforms/cuda.py, vllm/v1/attention/selector.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.core.attention_layer import AttentionBackend, AttentionLayer
from app.core.backend_rules import objections
from app.core.kv_dtypes import is_packed, is_quantized


@dataclass(frozen=True, slots=True)
class BackendOrder:
    """The order in which backends are tried on some cards.

    Empty `majors`: any card. `quantized` limits a row to quantised KV caches, `packed` to packed
    ones, `max_heads` to layers with at most so many query heads on a rank, `mm_prefix` to models
    whose images attend in both directions.
    """

    names: tuple[str, ...]
    mla: bool
    majors: tuple[int, ...] = ()
    quantized: bool = False
    packed: bool = False
    mm_prefix: bool = False
    max_heads: int | None = None

    def holds_for(self, layer: AttentionLayer) -> bool:
        """True where vLLM tries this order for the layer."""
        return (
            self.mla == layer.use_mla
            and (not self.majors or layer.capability[0] in self.majors)
            and (not self.quantized or is_quantized(layer.kv_cache_dtype))
            and (not self.packed or is_packed(layer.kv_cache_dtype))
            and (not self.mm_prefix or layer.use_mm_prefix)
            and (self.max_heads is None or layer.num_heads <= self.max_heads)
        )


@dataclass(frozen=True, slots=True, eq=False)
class BackendBook:
    """The backends of one release; of the orders the first that holds counts."""

    backends: tuple[AttentionBackend, ...]
    orders: tuple[BackendOrder, ...]
    reasons: tuple[tuple[str, str], ...]

    def candidates(self, layer: AttentionLayer) -> tuple[AttentionBackend, ...]:
        """List the backends vLLM tries for a layer, in its order."""
        by_name = {backend.name: backend for backend in self.backends}
        names = next((order.names for order in self.orders if order.holds_for(layer)), ())
        return tuple(by_name[name] for name in names if name in by_name)

    def select(self, layer: AttentionLayer) -> AttentionBackend | None:
        """Pick the first backend that can serve the layer, None where none can."""
        for backend in self.candidates(layer):
            if not objections(backend, layer):
                return backend
        return None

    def forced(self, layer: AttentionLayer, name: str) -> AttentionBackend | None:
        """Return the one backend that a model's own rules allow, where it can serve the layer."""
        backend = self.named(name)
        return None if backend is None or objections(backend, layer) else backend

    def named(self, name: str) -> AttentionBackend | None:
        """Find a backend of this release."""
        return next((backend for backend in self.backends if backend.name == name), None)

    def reasons_against(self, backend: AttentionBackend, layer: AttentionLayer) -> list[str]:
        """Write down what speaks against a backend, in vLLM's words."""
        texts = dict(self.reasons)
        kind = "ENCODER_DECODER" if layer.encoder_decoder else "DECODER"
        fields = {
            "attn_type": f"AttentionType.{kind}",
            "qk_nope_head_dim": layer.qk_nope_head_dim,
            "qk_nope_head_dims": list(backend.qk_nope_head_dims),
            "kv_cache_dtype": layer.kv_cache_dtype,
        }
        return [texts[key].format_map(fields) for key in objections(backend, layer)]

    def all_reasons(self, layer: AttentionLayer) -> str:
        """Write down what speaks against every backend where none serves, as vLLM lists it."""
        parts = (
            f"{backend.name}: [{', '.join(self.reasons_against(backend, layer))}]"
            for backend in self.candidates(layer)
        )
        return "{" + ", ".join(parts) + "}"
