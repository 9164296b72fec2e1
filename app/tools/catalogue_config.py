"""The config keys that decide memory, out of a whole config.json (part of the catalogue import)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.catalog.runs import code_runs

_SHAPE = """
architectures model_type dtype torch_dtype hidden_size intermediate_size num_hidden_layers
num_attention_heads num_key_value_heads head_dim attention_head_dim vocab_size
tie_word_embeddings attention_bias mlp_bias qkv_bias use_bias use_qk_norm qk_norm qk_norm_type
hidden_act hidden_activation mlp_hidden_act block_configs
"""
_LENGTH = """
max_position_embeddings n_positions max_seq_len seq_length model_max_length max_target_positions
max_sequence_length max_seq_length seq_len initial_context_length rope_scaling rope_parameters
rope_theta rope_local_base_freq partial_rotary_factor rotary_dim
"""
_ATTENTION = """
sliding_window sliding_window_size sliding_window_pattern use_sliding_window max_window_layers
layer_types attention_chunk_size full_attention_interval hybrid_layer_pattern
num_kv_shared_layers global_head_dim num_global_key_value_heads attention_k_eq_v
attn_logit_softcapping attn_type_list sparse_attention_config swa_num_attention_heads
swa_num_key_value_heads swa_head_dim swa_v_head_dim add_swa_attention_sink_bias
add_full_attention_sink_bias attn_output_gate attention_output_gate output_gate_type
use_bidirectional_attention
"""
_LATENT = """
q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim qk_head_dim v_head_dim o_lora_rank
o_groups mla_use_nope mla_use_output_gate index_head_dim index_n_heads index_topk
indexer_rope_interleave
index_topk_freq index_skip_topk_offset index_share_for_mtp_iteration indexer_types
compress_ratios hc_mult
"""
_EXPERTS = """
num_experts num_local_experts n_routed_experts n_shared_experts num_shared_experts
num_experts_per_tok num_experts_per_token experts_per_token top_k_experts
moe_intermediate_size expert_intermediate_size shared_expert_intermediate_size
shared_intermediate_size moe_shared_expert_intermediate_size first_k_dense_replace
moe_layer_freq mlp_layer_types mlp_only_layers decoder_sparse_step interleave_moe_layer_step
intermediate_size_mlp dense_intermediate_size moe_latent_size routed_expert_hidden_size
enable_moe_block use_routing_bias scoring_func topk_method moe_router_dtype expert_dtype
num_hash_layers hidden_size_per_layer_input vocab_size_per_layer_input use_double_wide_mlp
latent_moe_use_norm attn_res_block_size
"""
_STATE = """
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim linear_attn_config mamba_ssm_dtype mamba_ssm_cache_dtype mamba_num_heads
mamba_head_dim mamba_d_conv mamba_d_head mamba_d_state mamba_expand mamba_n_groups
mamba_n_heads mamba_proj_bias ssm_state_size conv_kernel n_groups expand chunk_size
use_conv_bias hybrid_override_pattern layers_block_type
"""
_DRAFTS = """
num_nextn_predict_layers mtp_num_hidden_layers mtp_use_dedicated_embeddings num_mtp_modules
mtp_transformer_layers use_mtp mtp_hybrid_override_pattern mtp_layers_block_type
"""
_TOWERS = """
text_config vision_config audio_config spatial_merge_size mm_tokens_per_image
vision_soft_tokens_per_image depth num_heads patch_size temporal_patch_size image_size
in_channels num_channels out_hidden_size num_position_embeddings position_embedding_size
deepstack_visual_indexes merge_kernel_size vt_hidden_size vt_intermediate_size
vt_num_attention_heads vt_num_hidden_layers mm_hidden_size text_hidden_size
init_pos_emb_height init_pos_emb_width init_pos_emb_time qkv_hidden_size attn_bias linear_bias
patch_embed_proj_bias mlp_type norm_type pooling_kernel_size default_output_length
image_seq_length mm_projector_type standardize use_clipped_linears vision_use_head
pixel_shuffle_ratio projector_input_dim projector_output_dim vision_output_dim
output_proj_dims conv_kernel_size subsampling_conv_channels audio_embed_dim mm_embed_dim
mm_posemb_size
"""
_INNER = """
full_attn_layers kda_layers short_conv_kernel_size use_full_rank_gate gate_lower_bound
use_sparse_attention sparse_attention_freq sparse_index_dim sparse_num_index_heads
sparse_block_size sparse_topk_blocks full_attention sliding_attention type rope_type factor
original_max_position_embeddings mrope_section attention n_heads_in_group no_op
replace_with_linear ffn ffn_mult
"""
_UNREMARKABLE = """
attention_dropout attention_value_scale auto_map beta_fast beta_slow bos_token_id
cache_implementation eos_token_id ep_size initializer_range layer_norm_epsilon
layernorm_epsilon n_group norm_eps norm_topk_prob output_router_logits pad_token_id
pretraining_tp quantization_config rms_norm_eps rope_interleave routed_scaling_factor
router_aux_loss_coef topk_group transformers_version use_cache
"""
KEPT = frozenset(
    word
    for group in (_SHAPE, _LENGTH, _ATTENTION, _LATENT, _EXPERTS, _STATE, _DRAFTS, _TOWERS, _INNER)
    for word in group.split()
)


def config_row(
    config: Mapping[str, Any], added: Mapping[str, Any], additions: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Reduce a config to what sizing needs; returns it and the remarkable keys that were left out.

    An architecture and a dtype that a transcribed config lacks are added; `null` counts as absent;
    long lists are written as runs.
    """
    dropped: set[str] = set()
    row = _reduced(_merged(config, added.get("set", {})), dropped)
    row.setdefault("architectures", [additions["architectures"].get(row["model_type"])])
    text = row.get("text_config", {})
    if not any(key in table for key in ("dtype", "torch_dtype") for table in (row, text)):
        row["dtype"] = "bfloat16"
    first = {key: row[key] for key in ("architectures", "model_type")}
    return first | row, sorted(dropped.difference(_UNREMARKABLE.split()))


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay changes over a table; tables in it are changed key by key."""
    nested = {
        key: _merged(table.get(key) or {}, value)
        for key, value in changes.items()
        if isinstance(value, dict)
    }
    return {**table, **changes, **nested}


def _reduced(table: Mapping[str, Any], dropped: set[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in table.items():
        if value is None:
            continue
        if key not in KEPT:
            dropped.add(key)
        elif isinstance(value, dict):
            kept[key] = _reduced(value, dropped)
        elif isinstance(value, list):
            entries = [
                _reduced(each, dropped) if isinstance(each, dict) else each for each in value
            ]
            kept[key] = code_runs(entries)
        else:
            kept[key] = value
    return kept
