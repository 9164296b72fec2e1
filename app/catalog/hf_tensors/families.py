"""Which family an architecture belongs to, and what each family's config leaves unsaid."""

from __future__ import annotations

from app.catalog.hf_tensors.decoder import Traits

LLAMA = Traits()
QWEN2 = Traits(qkv_bias=True, bias_follows_key=False)
QWEN3 = Traits(qk_norm="head")
MIXTRAL = Traits(
    moe_name="block_sparse_moe",
    expert_names=("w1", "w3", "w2"),
    expert_size_key="intermediate_size",
)
GLM4_MOE = Traits(
    qk_norm="head", o_bias_follows_key=False, router_bias="gate.e_score_correction_bias"
)

FAMILIES: dict[str, Traits] = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "ministral3": LLAMA,
    "mixtral": MIXTRAL,
    "phi3": Traits(fused=True),
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3,
    "glm4_moe": GLM4_MOE,
}

ARCHITECTURES: dict[str, str] = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Ministral3ForCausalLM": "ministral3",
    "MixtralForCausalLM": "mixtral",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Glm4MoeForCausalLM": "glm4_moe",
}
