"""Which family an architecture belongs to, and what each family's config leaves unsaid."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.hf_tensors.decoder import Traits
from app.catalog.hf_tensors.gemma import FOUR_NORMS

POST_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
W123 = ("w1", "w3", "w2")
GATE_CORRECTION = "gate.e_score_correction_bias"

LLAMA = Traits()
QWEN2 = Traits(qkv_bias=True, bias_is_fixed=True)
QWEN3 = Traits(qk_norm="head")
QWEN3_MOE = replace(QWEN3, ends_on="everywhere")
QWEN3_NEXT = Traits(
    qk_norm="head",
    shared="shared_expert",
    shared_gate=True,
    sequence_parallel=True,
    ends_on="everywhere",
)
DEEPSEEK = Traits(correction=GATE_CORRECTION, sequence_parallel=True)
GEMMA3 = Traits(
    qk_norm="head",
    norms=FOUR_NORMS,
    tied=True,
    ends_on="everywhere",
)
OLMO = Traits(qk_norm="full", norms=POST_NORMS, rotary=False)

FAMILIES: dict[str, Traits] = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "ministral3": LLAMA,
    "granite": LLAMA,
    "nemotron-nas": LLAMA,
    "mistral3": LLAMA,
    "llama4": LLAMA,
    "mixtral": Traits(moe="block_sparse_moe", expert_names=W123, ends_on="everywhere"),
    "phi3": Traits(fused=True),
    "qwen2": QWEN2,
    "qwen2_5_vl": replace(QWEN2, mrope_positions_factor=4),
    "qwen3": QWEN3,
    "qwen3_vl": QWEN3,
    "qwen3_moe": QWEN3_MOE,
    "qwen3_vl_moe": QWEN3_MOE,
    "qwen3_next": QWEN3_NEXT,
    "qwen3_5": replace(QWEN3_NEXT, ends_on="embed_everywhere"),
    "qwen3_5_moe": replace(QWEN3_NEXT, ends_on="embed_everywhere"),
    "glm4_moe": Traits(
        qk_norm="head",
        qk_norm_key="use_qk_norm",
        o_bias_follows=False,
        correction=GATE_CORRECTION,
        router_loaded_dtype="float32",
    ),
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": replace(DEEPSEEK, indexer_rotary_dtype="float32"),
    "glm_moe_dsa": DEEPSEEK,
    "glm4_moe_lite": replace(DEEPSEEK, router_loaded_dtype="float32", sequence_parallel=False),
    "kimi_k2": replace(DEEPSEEK, rotary_dtype="float32"),
    "kimi_k25": replace(DEEPSEEK, rotary_dtype="float32"),
    "mistral4": replace(DEEPSEEK, correction="", rotary=False),
    "deepseek_v4": Traits(expert_names=W123, sequence_parallel=True),
    "kimi_linear": Traits(moe="block_sparse_moe", correction=GATE_CORRECTION, expert_names=W123),
    "kimi_k3": Traits(moe="block_sparse_moe", correction=GATE_CORRECTION, expert_names=W123),
    "gpt_oss": Traits(
        qkv_bias=True,
        o_bias=True,
        sinks="sinks",
        router="router",
        router_bias=True,
        expert_bias=True,
        expert_names=("gate_up_proj", "gate_up_proj", "down_proj"),
        ends_on="everywhere",
        rotary_dtype="float32",
    ),
    "minimax_m2": Traits(
        qk_norm="full",
        moe="block_sparse_moe",
        expert_names=W123,
        correction="e_score_correction_bias",
        router_loaded_dtype="float32",
    ),
    "minimax_m3": Traits(
        qk_norm="head",
        moe="block_sparse_moe",
        expert_names=W123,
        correction="e_score_correction_bias",
        router_loaded_dtype="float32",
    ),
    "gemma3": GEMMA3,
    "gemma4": GEMMA3,
    "cohere2": Traits(
        norms=("input_layernorm",), tied=True, ends_on="everywhere", qk_norm_key="use_qk_norm"
    ),
    "exaone4": Traits(qk_norm="head", norms=POST_NORMS),
    "olmo2": OLMO,
    "olmo3": OLMO,
    "seed_oss": Traits(qkv_bias=True, o_bias_follows=False, rotary=False),
    "apertus": Traits(
        qk_norm="head",
        norms=("attention_layernorm", "feedforward_layernorm"),
        gated_mlp=False,
        scalars=("mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"),
    ),
    "mimo_v2_flash": Traits(correction=GATE_CORRECTION, router_loaded_dtype="float32"),
    "nemotron_h": Traits(
        correction=GATE_CORRECTION, sequence_parallel=True, router_fallback_dtype="float32"
    ),
    "granitemoehybrid": Traits(tied=True),
}

ARCHITECTURES: dict[str, str] = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Ministral3ForCausalLM": "ministral3",
    "GraniteForCausalLM": "granite",
    "DeciLMForCausalLM": "nemotron-nas",
    "Mistral3ForConditionalGeneration": "mistral3",
    "Llama4ForConditionalGeneration": "llama4",
    "Llama4ForCausalLM": "llama4",
    "MixtralForCausalLM": "mixtral",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3VLForConditionalGeneration": "qwen3_vl",
    "Qwen3VLMoeForConditionalGeneration": "qwen3_vl_moe",
    "Qwen3NextForCausalLM": "qwen3_next",
    "Qwen3_5ForConditionalGeneration": "qwen3_5",
    "Qwen3_5MoeForConditionalGeneration": "qwen3_5_moe",
    "Glm4MoeForCausalLM": "glm4_moe",
    "Glm4MoeLiteForCausalLM": "glm4_moe_lite",
    "GlmMoeDsaForCausalLM": "glm_moe_dsa",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "MistralLarge3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "KimiK25ForConditionalGeneration": "kimi_k25",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "KimiLinearForCausalLM": "kimi_linear",
    "GptOssForCausalLM": "gpt_oss",
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "MiniMaxM3ForCausalLM": "minimax_m3",
    "MiniMaxM3SparseForCausalLM": "minimax_m3",
    "MiniMaxM3SparseForConditionalGeneration": "minimax_m3",
    "Gemma3ForConditionalGeneration": "gemma3",
    "Gemma3ForCausalLM": "gemma3",
    "Gemma4ForConditionalGeneration": "gemma4",
    "Gemma4ForCausalLM": "gemma4",
    "Gemma4UnifiedForConditionalGeneration": "gemma4",
    "Cohere2ForCausalLM": "cohere2",
    "Exaone4ForCausalLM": "exaone4",
    "Olmo2ForCausalLM": "olmo2",
    "Olmo3ForCausalLM": "olmo3",
    "SeedOssForCausalLM": "seed_oss",
    "ApertusForCausalLM": "apertus",
    "MiMoV2FlashForCausalLM": "mimo_v2_flash",
    "NemotronHForCausalLM": "nemotron_h",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
}

# Names that model_type has where the family is called otherwise.
MODEL_TYPES: dict[str, str] = {
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "gemma4_unified": "gemma4",
    "llama4_text": "llama4",
    "qwen3_5_text": "qwen3_5",
    "qwen3_5_moe_text": "qwen3_5_moe",
    "minimax_m3_vl": "minimax_m3",
}
