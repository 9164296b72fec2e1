"""Which layouts vLLM refuses for a model, and why."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from app.core.layout import Layout
from app.core.model_spec import ModelSpec
from app.core.model_traits import model_traits
from app.core.reasons import Refusal
from app.core.refusals import refuse
from app.core.releases import Release
from app.core.units import ceil_div

_VOCAB_PADDING = 64
Check = Callable[[ModelSpec, Layout, Release], None]


def check_layout(model: ModelSpec, layout: Layout, release: Release) -> None:
    """Raise the Refusal with which vLLM rejects this model in this layout.

    Source: vllm/config/model.py `verify_with_parallel_config`.
    """
    _raise(_check_layout, model, layout, release)


def check_model_build(model: ModelSpec, layout: Layout, release: Release) -> None:
    """Raise the Refusal of the first layer that cannot be built in this layout.

    Source: vllm/model_executor/layers/linear.py `QKVParallelLinear`,
    vllm/model_executor/layers/mamba/mamba_mixer2.py, vllm/model_executor/models/gpt_oss.py.
    """
    _raise(_check_model_build, model, layout, release)


def _raise(check: Check, model: ModelSpec, layout: Layout, release: Release) -> None:
    refusal = _refusal_of(check, model, layout, release)
    if refusal is not None:
        raise refusal


@lru_cache(maxsize=8192)
def _refusal_of(check: Check, model: ModelSpec, layout: Layout, release: Release) -> Refusal | None:
    """Check once; a refusal is kept like an answer."""
    try:
        check(model, layout, release)
    except Refusal as refusal:
        return refusal
    return None


def _check_layout(model: ModelSpec, layout: Layout, release: Release) -> None:
    tp, heads = layout.tensor_parallel_size, model.num_attention_heads
    if heads % tp:
        raise refuse(
            release,
            "heads_not_divisible",
            "attention_heads_not_divisible",
            num_attention_heads=heads,
            tensor_parallel_size=tp,
        )
    if layout.enable_expert_parallel and not model.num_experts:
        raise refuse(release, "refused_by_vllm", "no_experts")
    traits = model_traits(model)
    whole = traits.encoder_decoder or (traits.packed and not release.deepseek_v4_pipelines)
    if layout.pipeline_parallel_size > 1 and whole:
        raise refuse(release, "refused_by_vllm", "pipeline_not_supported")
    if layout.decode_context_parallel_size > 1 and not traits.latent:
        _check_decode_context_parallelism(model, layout, release)


def _check_model_build(model: ModelSpec, layout: Layout, release: Release) -> None:
    tp, kv_heads = layout.tensor_parallel_size, model.num_key_value_heads
    traits = model_traits(model)
    # In the order in which a model is built: its embedding comes first.
    vocabulary = ceil_div(model.vocab_size, _VOCAB_PADDING) * _VOCAB_PADDING
    if vocabulary % tp:
        raise refuse(release, "refused_by_vllm", "tensor_not_divisible", size=vocabulary, parts=tp)
    if traits.mamba_groups > 1 and traits.mamba_groups % tp:
        numbers = {"num_groups": traits.mamba_groups, "tensor_parallel_size": tp}
        raise refuse(release, "heads_not_divisible", "mamba_groups", **numbers)
    if not kv_heads or traits.latent:
        return
    numbers = {"num_key_value_heads": kv_heads, "tensor_parallel_size": tp}
    if model.model_type == "gpt_oss" and kv_heads < tp:
        raise refuse(release, "heads_not_divisible", "kv_heads_not_replicated", **numbers)
    if kv_heads % tp if kv_heads >= tp else tp % kv_heads:
        # A bare assert: vLLM says nothing.
        raise refuse(release, "heads_not_divisible", "kv_heads_not_divisible", **numbers)


def _check_decode_context_parallelism(model: ModelSpec, layout: Layout, release: Release) -> None:
    tp, dcp = layout.tensor_parallel_size, layout.decode_context_parallel_size
    kv_heads = max(1, model.num_key_value_heads)
    numbers = {
        "tensor_parallel_size": tp,
        "num_key_value_heads": kv_heads,
        "decode_context_parallel_size": dcp,
        "max_dcp_size": tp // kv_heads,
        "num_q_per_kv": model.num_attention_heads // kv_heads,
    }
    if tp <= kv_heads:
        raise refuse(release, "dcp_not_supported", "dcp_tensor_parallel_too_small", **numbers)
    if dcp > tp // kv_heads:
        raise refuse(release, "dcp_not_supported", "dcp_exceeds_replicas", **numbers)
    if numbers["num_q_per_kv"] % dcp:
        raise refuse(release, "dcp_not_supported", "dcp_query_heads", **numbers)
