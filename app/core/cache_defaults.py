"""How the cache is kept: its dtype, prefix caching, states of recurrent layers, drafts.

Source: vllm/engine/arg_utils.py, vllm/config/cache.py, vllm/model_executor/models/config.py
`MambaModelConfig`, `GlmMoeDsaForCausalLM`.
"""

from __future__ import annotations

from app.core.attention_layer import BLACKWELL
from app.core.engine import SpeculativeConfig
from app.core.model_spec import ModelSpec
from app.core.model_traits import ModelTraits
from app.core.refusals import refuse
from app.core.request import SizingRequest


def cache_dtype(request: SizingRequest) -> str:
    """Resolve `--kv-cache-dtype`; `auto` stays where it means the model's. Raises Refusal."""
    dtype, release = request.engine_args.kv_cache_dtype, request.release
    if dtype not in release.kv_cache_dtypes:
        raise refuse(release, "kv_dtype_not_supported", "dtype_unknown", kv_cache_dtype=dtype)
    if dtype != "auto":
        return dtype
    declared = request.checkpoint.kv_cache_scheme
    if declared is not None and release.checkpoint_kv_cache_scheme:
        return declared
    major = (request.gpu.compute_capability or (0, 0))[0]
    if major == BLACKWELL and request.model.model_type in release.fp8_kv_by_default_sm100:
        return "fp8_e4m3"
    return dtype


def prefix_caching(request: SizingRequest, traits: ModelTraits) -> bool:
    """Tell whether prompts share cached prefixes."""
    if traits.encoder_decoder:
        return False
    given, release = request.engine_args.enable_prefix_caching, request.release
    if traits.hybrid:
        wanted = release.hybrid_prefix_caching if given is None else given
        return wanted and _state_mode(request, traits) != "none"
    return not traits.recurrent if given is None else given


def mamba_cache_mode(request: SizingRequest, traits: ModelTraits, *, caching: bool) -> str:
    """Say which states of recurrent layers are kept: `none` but the last, `align`, `all`."""
    return _state_mode(request, traits) if traits.recurrent and caching else "none"


def _state_mode(request: SizingRequest, traits: ModelTraits) -> str:
    """Mode of states under prefix caching, `none` where a release cannot combine the two."""
    rule, asked = request.release.mamba_caching, request.engine_args.mamba_cache_mode
    every = "all" if traits.keeps_every_state else ""
    if rule == "all":
        return every or "none"
    if rule == "all_or_align":
        return "align" if asked == "align" else every or "align"
    if rule == "align":
        return every if asked == "all" and every else "align"
    return "align" if rule == "align_only" else "none"


def draft_layers(draft: SpeculativeConfig | None, model: ModelSpec) -> int:
    """Count the layers that a draft adds to the cache: the checkpoint's MTP layers, or one."""
    if draft is None or draft.method in {"ngram", "ngram_gpu", "suffix"}:
        return 0
    if "mtp" in draft.method:
        return len(model.mtp_layers)
    return 1
