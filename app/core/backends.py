"""Which attention backend serves a layer, or why none does.

The backends and the order in which they are tried are rows of `data/vllm/backends.toml`.
Source: vllm/platforms/cuda.py, vllm/v1/attention/backend.py `validate_configuration`,
vllm/v1/attention/backends/fa_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core.kv_dtypes import is_quantized

Capability = tuple[int, int]
HOPPER, BLACKWELL, THOR, CONSUMER_BLACKWELL = 9, 10, 11, 12
AMPERE_AND_ADA = 8
_FA2, _FA3, _FA4 = 2, 3, 4
_LARGEST_FA3_HEAD = 256
_LARGEST_FA4_HEAD_BLACKWELL = 128


@dataclass(frozen=True, slots=True)
class AttentionBackend:
    """What one backend can do.

    `block_sizes`: a block must be a multiple of one of them. Empty `head_sizes` or `majors` mean
    any. `sinks` and `mm_prefix` are `yes`, `no` or the name of a rule. `only_mm_prefix`: tried only
    where images attend in both directions. `rules` name combinations that are refused.
    """

    name: str
    kv_cache_dtypes: frozenset[str]
    block_sizes: tuple[int, ...]
    model_dtypes: frozenset[str] = frozenset({"float16", "bfloat16"})
    mla: bool = False
    sparse: bool = False
    head_sizes: tuple[int, ...] = ()
    head_size_multiple: int = 1
    min_head_size: int = 1
    max_head_size: int = 2**20
    majors: tuple[int, ...] = ()
    min_capability: Capability = (0, 0)
    max_capability: Capability = (99, 9)
    sinks: str = "no"
    mm_prefix: str = "no"
    only_mm_prefix: bool = False
    sliding_window: bool = False
    encoder_decoder: bool = False
    dcp: bool = False
    rules: tuple[str, ...] = ()

    def supports_block_size(self, block_size: int) -> bool:
        """True where blocks of that size can be split into the kernel's."""
        return any(block_size % size == 0 for size in self.block_sizes)


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """What decides about the backend of a layer.

    `flash_attention_version` overrides the version that the card and head size would get.
    """

    capability: Capability
    head_size: int
    dtype: str
    kv_cache_dtype: str
    block_size: int | None
    use_mla: bool = False
    has_sink: bool = False
    use_sparse: bool = False
    use_mm_prefix: bool = False
    has_sliding_window: bool = False
    use_dcp: bool = False
    encoder_decoder: bool = False
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    num_heads: int = 0
    nvfp4_beyond_sm100: bool = True
    flash_attention_version: int | None = None


@dataclass(frozen=True, slots=True)
class BackendOrder:
    """The order in which backends are tried on some cards.

    Empty `majors`: any card. `quantized` limits a row to quantised KV caches, `max_heads` to layers
    with at most so many query heads on a rank.
    """

    names: tuple[str, ...]
    mla: bool
    majors: tuple[int, ...] = ()
    quantized: bool = False
    max_heads: int | None = None

    def holds_for(self, layer: AttentionLayer) -> bool:
        """True where vLLM tries this order for the layer."""
        return (
            self.mla == layer.use_mla
            and (not self.majors or layer.capability[0] in self.majors)
            and (not self.quantized or is_quantized(layer.kv_cache_dtype))
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
        chosen = (by_name[name] for name in names if name in by_name)
        return tuple(b for b in chosen if layer.use_mm_prefix or not b.only_mm_prefix)

    def select(self, layer: AttentionLayer, only: str = "") -> AttentionBackend | None:
        """Pick the first backend that can serve the layer, None where none can.

        `only` names the one backend that the model's own rules allow.
        """
        for backend in self.candidates(layer):
            if (not only or backend.name == only) and not _objections(backend, layer):
                return backend
        return None

    def objections(self, layer: AttentionLayer) -> str:
        """Write down every backend's objections as vLLM's error text lists them."""
        texts = dict(self.reasons)
        fields = {
            "attn_type": "encoder_decoder" if layer.encoder_decoder else "decoder",
            "qk_nope_head_dim": layer.qk_nope_head_dim,
            "kv_cache_dtype": layer.kv_cache_dtype,
        }
        parts = []
        for backend in self.candidates(layer):
            found = [texts[key].format_map(fields) for key in _objections(backend, layer) if key]
            if found:
                parts.append(f"{backend.name}: [{', '.join(found)}]")
        return "{" + ", ".join(parts) + "}"


def flash_attention_version(layer: AttentionLayer) -> int:
    """FlashAttention version that would compute the layer, 2 where nothing newer applies."""
    major = layer.capability[0]
    version = {HOPPER: _FA3, BLACKWELL: _FA4}.get(major, _FA2)
    if layer.flash_attention_version is not None:
        version = layer.flash_attention_version
    if version == _FA3 and major == HOPPER and layer.head_size > _LARGEST_FA3_HEAD:
        version = _FA4
    if version == _FA4 and major >= BLACKWELL and layer.head_size > _LARGEST_FA4_HEAD_BLACKWELL:
        return _FA2
    return version


def _objections(backend: AttentionBackend, layer: AttentionLayer) -> list[str]:
    """List what a backend cannot do, in vLLM's order; one combination at most."""
    checks = (
        ("head_size", not _fits_head(backend, layer)),
        ("dtype", layer.dtype not in backend.model_dtypes),
        ("kv_cache_dtype", not _fits_cache_dtype(backend, layer)),
        ("block_size", layer.block_size and not backend.supports_block_size(layer.block_size)),
        ("mm_prefix", layer.use_mm_prefix and not _has(backend.mm_prefix, layer)),
        ("mla", layer.use_mla and not backend.mla),
        ("non_mla", backend.mla and not layer.use_mla),
        ("sinks", layer.has_sink and not _has(backend.sinks, layer)),
        ("sparse", layer.use_sparse and not backend.sparse),
        ("non_sparse", backend.sparse and not layer.use_sparse),
        ("capability", not _fits_card(backend, layer.capability)),
        ("attention_type", layer.encoder_decoder and not backend.encoder_decoder),
        ("sliding_window", layer.has_sliding_window and not backend.sliding_window),
        ("dcp", layer.use_dcp and not backend.dcp),
    )
    found = [key for key, refused in checks if refused]
    combination = next((rule for rule in backend.rules if _RULES[rule](layer)), None)
    return found if combination is None else [*found, combination]


def _fits_head(backend: AttentionBackend, layer: AttentionLayer) -> bool:
    size = layer.head_size
    if backend.head_sizes:
        return size in backend.head_sizes
    largest = backend.max_head_size
    if backend.name == "FLASH_ATTN" and layer.capability[0] not in {HOPPER, BLACKWELL, THOR}:
        largest = _LARGEST_FA3_HEAD
    return backend.min_head_size <= size <= largest and size % backend.head_size_multiple == 0


def _fits_cache_dtype(backend: AttentionBackend, layer: AttentionLayer) -> bool:
    dtype, major = layer.kv_cache_dtype, layer.capability[0]
    if dtype not in backend.kv_cache_dtypes:
        return False
    if dtype.startswith("nvfp4") and dtype != "nvfp4_ds_mla":
        if major == BLACKWELL:
            return True
        beyond = {AMPERE_AND_ADA, HOPPER, CONSUMER_BLACKWELL}
        return layer.nvfp4_beyond_sm100 and dtype == "nvfp4" and major in beyond
    if backend.name in {"FLASH_ATTN", "TRITON_FLASH_ATTN"} and is_quantized(dtype):
        return major in {HOPPER, BLACKWELL} and layer.flash_attention_version != _FA2
    return True


def _fits_card(backend: AttentionBackend, capability: Capability) -> bool:
    if backend.majors and capability[0] not in backend.majors:
        return False
    return backend.min_capability <= capability <= backend.max_capability


def _has(ability: str, layer: AttentionLayer) -> bool:
    return ability == "yes" or (ability != "no" and _ABILITIES[ability](layer))


def _fa_reads_quantized(layer: AttentionLayer) -> bool:
    version, major = flash_attention_version(layer), layer.capability[0]
    if major == HOPPER:
        return version == _FA3 or (version == _FA4 and layer.head_size == 2 * _LARGEST_FA3_HEAD)
    return version == _FA4 and major == BLACKWELL


def _quantized(layer: AttentionLayer) -> bool:
    return is_quantized(layer.kv_cache_dtype)


def _device_flash_attention(layer: AttentionLayer) -> int:
    """Version that the card alone gives, whatever the head size."""
    version = {HOPPER: _FA3, BLACKWELL: _FA4}.get(layer.capability[0], _FA2)
    return version if layer.flash_attention_version is None else layer.flash_attention_version


_ABILITIES: dict[str, Callable[[AttentionLayer], bool]] = {
    "flash_attention_3_or_4": lambda layer: _device_flash_attention(layer) in {_FA3, _FA4},
    "flash_attention_4": lambda layer: layer.capability[0] in {HOPPER, BLACKWELL, THOR},
    "flashinfer": lambda layer: layer.capability[0] in {HOPPER, BLACKWELL, CONSUMER_BLACKWELL},
}
_RULES: dict[str, Callable[[AttentionLayer], bool]] = {
    "flash_attention_sinks": lambda layer: layer.has_sink and layer.capability < (9, 0),
    "flash_attention_fp8_mm_prefix": lambda layer: (
        layer.use_mm_prefix and _quantized(layer) and layer.capability == (9, 0)
    ),
    "flash_attention_fp8": lambda layer: _quantized(layer) and not _fa_reads_quantized(layer),
    "flash_attention_mm_prefix": lambda layer: (
        layer.use_mm_prefix and flash_attention_version(layer) != _FA4
    ),
    "flash_attention_causal": lambda layer: flash_attention_version(layer) not in {_FA3, _FA4},
    "flash_attention_mla": lambda layer: layer.capability[0] != HOPPER,
    "flash_attention_sparse_dtype": lambda layer: (
        layer.kv_cache_dtype not in {"auto", "float16", "bfloat16"}
    ),
    "flash_attention_sparse_dcp": lambda layer: layer.use_dcp,
    "nvfp4_head_size_64": lambda layer: (
        layer.kv_cache_dtype.startswith("nvfp4")
        and layer.capability[0] != BLACKWELL
        and layer.head_size == 64  # noqa: PLR2004 - the head size of the rule's name
    ),
    "nvfp4_sinks": lambda layer: (
        layer.kv_cache_dtype.startswith("nvfp4")
        and layer.capability[0] != BLACKWELL
        and layer.has_sink
    ),
    "flashinfer_mla_nope": lambda layer: layer.qk_nope_head_dim not in {64, 128, 192},
    "tokenspeed_missing": lambda _: True,
    "flashmla_sparse_512": lambda layer: (
        layer.head_size == 512 and layer.qk_rope_head_dim != 0  # noqa: PLR2004 - see its name
    ),
    "flashmla_sparse_nvfp4": lambda layer: (
        layer.kv_cache_dtype == "nvfp4_ds_mla" and layer.capability[0] != BLACKWELL
    ),
    "flashinfer_sparse_rank": lambda layer: layer.kv_lora_rank != 512,  # noqa: PLR2004
    "flashinfer_sparse_rope": lambda layer: layer.qk_rope_head_dim not in {0, 64},
    "flashinfer_sparse_nope": lambda layer: layer.qk_nope_head_dim not in {128, 192},
}
