"""Linear layers that vLLM merges into one parameter."""

from __future__ import annotations

# Last part of a Hugging Face module path -> the layer vLLM holds it in. Source:
# `packed_modules_mapping` and `stacked_params_mapping` of vllm/model_executor/models/ (0.32.0).
MERGED_LAYERS = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
    "w1": "w13",
    "w3": "w13",
    "in_proj_qkv": "in_proj_qkvz",
    "in_proj_z": "in_proj_qkvz",
    "in_proj_a": "in_proj_ba",
    "in_proj_b": "in_proj_ba",
    "q_a_proj": "fused_qkv_a_proj",
    "kv_a_proj_with_mqa": "fused_qkv_a_proj",
}


def merged_name(name: str) -> str:
    """Path of the parameter a tensor ends up in; its own path where nothing is merged."""
    head, _, last = name.rpartition(".")
    merged = MERGED_LAYERS.get(last)
    return name if merged is None else f"{head}.{merged}"
