"""Which layouts vLLM refuses for a model, and why."""

from __future__ import annotations

from functools import lru_cache

from app.core.layout import Layout
from app.core.model_spec import MlaSpec, ModelSpec
from app.core.refusals import refuse
from app.core.releases import Release


@lru_cache(maxsize=4096)
def _refusal_of(model: ModelSpec, layout: Layout, release: Release) -> Exception | None:
    try:
        _check_heads(model, layout, release)
        if layout.decode_context_parallel_size > 1:
            _check_decode_context_parallelism(model, layout, release)
    except Exception as refusal:  # noqa: BLE001 - kept and raised again by check_layout
        return refusal
    return None


def check_layout(model: ModelSpec, layout: Layout, release: Release) -> None:
    """Raise the Refusal with which vLLM rejects this model in this layout.

    Source: vllm/config/model.py `verify_with_parallel_config`, vllm/model_executor/layers/
    linear.py `QKVParallelLinear`.
    """
    refusal = _refusal_of(model, layout, release)
    if refusal is not None:
        raise refusal


def _check_heads(model: ModelSpec, layout: Layout, release: Release) -> None:
    tp = layout.tensor_parallel_size
    heads = model.num_attention_heads
    if heads % tp:
        raise refuse(
            release,
            "heads_not_divisible",
            "attention_heads_not_divisible",
            num_attention_heads=heads,
            tensor_parallel_size=tp,
        )
    kv_heads = model.num_key_value_heads
    if kv_heads and not _is_mla(model) and (kv_heads % tp if kv_heads >= tp else tp % kv_heads):
        raise refuse(
            release,
            "heads_not_divisible",
            "kv_heads_not_divisible",
            num_key_value_heads=kv_heads,
            tensor_parallel_size=tp,
        )


def _check_decode_context_parallelism(model: ModelSpec, layout: Layout, release: Release) -> None:
    if _is_mla(model):
        return
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


def _is_mla(model: ModelSpec) -> bool:
    return any(isinstance(layer.cache, MlaSpec) for layer in model.layers)
