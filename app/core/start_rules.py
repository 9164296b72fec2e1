"""What vLLM refuses about arguments before it builds the model, in its order.

A check that came later than a release has no text there.
"""

from __future__ import annotations

from app.core.kv_dtypes import is_packed
from app.core.model_spec import PackedSpec
from app.core.model_traits import ModelTraits
from app.core.refusals import refuse
from app.core.request import SizingRequest

_SIXTEEN_BIT = frozenset({"float16", "bfloat16"})
_OVERFLOW_IN_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
# Methods that give every attention layer the scales of a checkpoint (`BaseKVCacheMethod`).
_WITH_KV_SCALES = ("fp8", "modelopt", "quark", "compressed-tensors")


def check_before_batches(request: SizingRequest, traits: ModelTraits, cache_dtype: str) -> None:
    """Refuse what vllm/engine/arg_utils.py `create_engine_config` refuses. Raises Refusal."""
    release, layout = request.release, request.layout
    if (
        is_packed(cache_dtype)
        and traits.hybrid
        and not traits.named_attention
        and release.error("turboquant_hybrid")
    ):
        raise refuse(
            release, "kv_dtype_not_supported", "turboquant_hybrid", kv_cache_dtype=cache_dtype
        )
    tp, dcp = layout.tensor_parallel_size, layout.decode_context_parallel_size
    if tp % dcp and release.error("dcp_does_not_divide"):
        raise refuse(
            release,
            "dcp_not_supported",
            "dcp_does_not_divide",
            tensor_parallel_size=tp,
            decode_context_parallel_size=dcp,
        )
    draft = request.engine_args.speculative_config
    if draft is not None and "mtp" in draft.method and not request.model.mtp_layers:
        raise refuse(release, "refused_by_vllm", "speculative_method", method=draft.method)


def check_model_dtype(request: SizingRequest, dtype: str) -> None:
    """Refuse float16 for models that overflow in it. Raises Refusal.

    Source: vllm/config/model.py `_check_valid_dtype`.
    """
    release, model = request.release, request.model
    # vLLM names the outer config, whose type has no suffix.
    name = model.model_type.removesuffix("_text") if model.multimodal else model.model_type
    if dtype == "float16" and name in _OVERFLOW_IN_FLOAT16 and release.error("float16_model"):
        raise refuse(release, "refused_by_vllm", "float16_model", model_type=name)


def check_chunked_prefill(request: SizingRequest, mode: str, *, chunked: bool) -> None:
    """Refuse whole prompts where states are aligned to blocks. Raises Refusal.

    Source: vllm/model_executor/models/config.py `MambaModelConfig`.
    """
    if mode == "align" and not chunked and request.release.error("mamba_chunked_prefill"):
        raise refuse(request.release, "refused_by_vllm", "mamba_chunked_prefill")


def check_dtypes(request: SizingRequest, dtype: str, cache_dtype: str) -> None:
    """Refuse a cache in another 16-bit dtype than the model's (0.33.0). Raises Refusal."""
    release = request.release
    mixed = cache_dtype in _SIXTEEN_BIT and cache_dtype != dtype
    if mixed and release.error("cache_dtype_mismatch"):
        raise refuse(
            release,
            "kv_dtype_not_supported",
            "cache_dtype_mismatch",
            kv_cache_dtype=cache_dtype,
            dtype=dtype,
        )


def check_latent_dtype(request: SizingRequest, traits: ModelTraits, cache_dtype: str) -> None:
    """Refuse NVFP4 for MLA. Raises Refusal."""
    plain = cache_dtype.startswith("nvfp4") and not cache_dtype.endswith("_ds_mla")
    if plain and traits.latent and request.release.error("nvfp4_mla"):
        raise refuse(
            request.release, "kv_dtype_not_supported", "nvfp4_mla", kv_cache_dtype=cache_dtype
        )


def check_checkpoint_scales(request: SizingRequest, cache_dtype: str) -> None:
    """Refuse FP8 E5M2 where the checkpoint's method brings E4M3 scales. Raises Refusal.

    vLLM asks after it chose a backend. DeepSeek-V4's caches are not of that attention class.
    From 0.24.0 a compressed-tensors checkpoint brings them only if it declares a KV scheme.
    Source: vllm/model_executor/layers/attention/attention.py `_init_kv_cache_quant`.
    """
    release, checkpoint = request.release, request.checkpoint
    method = checkpoint.quantization.method or ""
    packed = any(isinstance(layer.cache, PackedSpec) for layer in request.model.layers[:1])
    if cache_dtype != "fp8_e5m2" or packed or not method.startswith(_WITH_KV_SCALES):
        return
    text = "fp8_e5m2_checkpoint"
    if method == "compressed-tensors" and release.error("fp8_e5m2_declared"):
        if checkpoint.kv_cache_scheme is None:
            return
        text = "fp8_e5m2_declared"
    raise refuse(release, "kv_dtype_not_supported", text, kv_cache_dtype=cache_dtype, method=method)


def check_slices(request: SizingRequest) -> None:
    """Refuse a group of MIG slices: they have no peer access to each other. Raises Refusal.

    CUDA gives a process a single slice, and NCCL joins slices only as an experiment, over the
    host's memory. Source: NVIDIA's MIG user guide, device enumeration (P2P: No in
    nvidia-smi mig -lgip); github.com/NVIDIA/nccl/issues/1716.
    """
    layout, gpu = request.layout, request.gpu
    joined = layout.cards_per_engine * layout.data_parallel_size
    if gpu.mig_of and joined > 1:
        raise refuse(
            request.release, "mig_not_joined", slices=joined, mig_instances=gpu.mig_instances
        )
