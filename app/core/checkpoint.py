"""A checkpoint: how the tensors of a model are stored."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quantization:
    """Storage scheme of each module class.

    `method` is vLLM's quantisation name (`fp8`, `modelopt`, `modelopt_fp4`, `compressed-tensors`,
    `awq`, `gptq`, `mxfp4` ...), None for an unquantised checkpoint. `schemes` maps a module class
    of TensorGroup.module (`attn`, `mlp`, `expert`, `shared`, `ssm`, `lm_head` ...) or a part
    (`mtp`, `vision`) to a scheme of `storage_schemes.STORAGE_SCHEMES`; what is absent stays in the
    model's dtype, and so does everything that is not quantizable. A part wins over a class.
    `by_name` overrides single tensor names (`self_attn.o_proj`, or `12.self_attn.o_proj` for one
    layer), which win over both; the scheme `none` there means the model's dtype.
    """

    method: str | None = None
    schemes: tuple[tuple[str, str], ...] = ()
    by_name: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One repository of weights of a model.

    `kv_cache_scheme` is the KV cache dtype the checkpoint itself declares (`fp8_e4m3`, `nvfp4` or
    None): `--kv-cache-dtype auto` then means that. `weights_bytes` is a size somebody published,
    None where none was seen; `includes` names optional parts present in the files (`mtp`,
    `mtp_shared` for a draft's copies of embedding and head, `vision`, `audio`).
    """

    hf_id: str
    precision: str
    quantization: Quantization = field(default_factory=Quantization)
    kv_cache_scheme: str | None = None
    weights_bytes: int | None = None
    confidence: str = "unknown"
    source: str = ""
    includes: frozenset[str] = frozenset({"mtp", "mtp_shared", "vision", "audio"})
