"""What each layer of a config keeps in the cache, family by family."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from app.catalog.hf_fields import ConfigError, Fields, text_fields
from app.catalog.hf_layers import (
    cache_layers,
    has_sinks,
    length_spec,
    mm_prefix,
    mtp_layers,
)
from app.core.model_spec import AttentionKind, AttentionSpec, MlaSpec, PackedSpec, StateSpec

BASE: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}


def config(model_type: str, **more: object) -> dict[str, Any]:
    """Return a small config of a family."""
    return {**BASE, "model_type": model_type, **more}


def kinds(own: Mapping[str, object]) -> list[str]:
    """Name what each layer keeps, `+` for two caches and `-` for none."""
    names = []
    for layer in cache_layers(own):
        caches = [cache for cache in (layer.cache, layer.beside) if cache is not None]
        names.append("+".join(_kind(cache) for cache in caches) or "-")
    return names


def _kind(cache: object) -> str:
    if isinstance(cache, AttentionSpec | StateSpec):
        return cache.kind
    if isinstance(cache, MlaSpec):
        return "index+mla" if cache.index_head_dim else "mla"
    assert isinstance(cache, PackedSpec)
    return f"packed{cache.compress_ratio}"


FULL: AttentionKind = "full_attention"
WINDOW: AttentionKind = "sliding_window"
CHUNK: AttentionKind = "chunked_local"
GDN = {
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
}
MAMBA = {
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "mamba_n_heads": 8,
    "mamba_d_head": 64,
    "mamba_d_state": 16,
}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (config("llama"), [FULL] * 4),
        (config("mistral", sliding_window=1024), [WINDOW] * 4),
        (config("qwen2", sliding_window=1024, use_sliding_window=False), [FULL] * 4),
        (config("gemma2", sliding_window=64), [WINDOW, FULL] * 2),
        (config("gemma3_text", sliding_window=64, sliding_window_pattern=2), [WINDOW, FULL] * 2),
        (config("gpt_oss"), [WINDOW, FULL] * 2),
        (config("llama4_text"), [CHUNK, CHUNK, CHUNK, FULL]),
        (config("llama4", no_rope_layers=[1, 0, 1, 0]), [CHUNK, FULL] * 2),
        (config("deepseek_v3", kv_lora_rank=512, qk_rope_head_dim=64), ["mla"] * 4),
        (config("deepseek_v32", kv_lora_rank=512, index_topk=2048), ["index+mla"] * 4),
        (
            config("glm_moe_dsa", kv_lora_rank=512, index_topk=2048, index_topk_freq=2),
            ["index+mla", "index+mla", "mla", "index+mla"],
        ),
        (
            config("qwen3_next", full_attention_interval=2, **GDN),
            ["gated_delta_net", FULL] * 2,
        ),
        (
            config("nemotron_h", hybrid_override_pattern="M-*M", ssm_state_size=16, **MAMBA),
            ["mamba2", "-", FULL, "mamba2"],
        ),
        (config("bamba", attn_layer_indices=[1], **MAMBA), ["mamba2", FULL, "mamba2", "mamba2"]),
        (config("falcon_h1", **MAMBA), [f"{FULL}+mamba2"] * 4),
        (config("jamba", attn_layer_period=2, attn_layer_offset=1), ["mamba1", FULL] * 2),
        (config("mamba", state_size=16), ["mamba1"] * 4),
        (config("lfm2", full_attn_idxs=[2]), ["short_conv", "short_conv", FULL, "short_conv"]),
        (
            config("minimax", attn_type_list=[0, 0, 0, 1]),
            ["linear_attention"] * 3 + [FULL],
        ),
        (
            config(
                "kimi_linear",
                kv_lora_rank=512,
                linear_attn_config={"num_heads": 4, "head_dim": 64, "full_attn_layers": [4]},
            ),
            ["kda", "kda", "kda", "mla"],
        ),
        (
            config("deepseek_v4", compress_ratios=[0, 4, 128, 4], index_head_dim=128),
            ["packed0", "packed4", "packed128", "packed4"],
        ),
        (
            config(
                "gemma4_text",
                sliding_window=64,
                num_kv_shared_layers=2,
                layer_types=[
                    "sliding_attention",
                    "full_attention",
                    "sliding_attention",
                    "full_attention",
                ],
            ),
            [WINDOW, FULL, "-", "-"],
        ),
        (
            config(
                "minimax_m3",
                sparse_attention_config={"sparse_attention_freq": [0, 1], "sparse_index_dim": 64},
            ),
            [FULL] * 4,
        ),
        (
            config("bailing_hybrid", layer_group_size=2, kv_lora_rank=512),
            ["linear_attention", "mla"] * 2,
        ),
        (
            config("bailing_hybrid", layer_group_size=4, short_conv_kernel_size=4),
            ["kda", "kda", "kda", FULL],
        ),
        (
            config(
                "nemotron-nas",
                block_configs=[
                    {"attention": {"n_heads_in_group": 4}},
                    {"attention": {"no_op": True}},
                    {"attention": {"replace_with_linear": True}},
                ],
            ),
            [FULL, "-", "-"],
        ),
        (
            config(
                "zamba2",
                layers_block_type=["mamba", "hybrid"],
                n_mamba_heads=8,
                mamba_headdim=64,
            ),
            ["mamba2", f"{FULL}+mamba2"],
        ),
        (
            {
                "model_type": "whisper",
                "decoder_layers": 2,
                "decoder_attention_heads": 8,
                "d_model": 256,
            },
            [f"{FULL}+cross_attention"] * 2,
        ),
    ],
)
def test_every_family_has_its_layers(own: dict[str, Any], expected: list[str]) -> None:
    """Kinds of caches in the order of the layers."""
    assert kinds(own) == expected


def test_heads_and_windows_are_read() -> None:
    """KV heads, head size, windows and sinks come from the config's own keys."""
    [full, *_] = cache_layers(config("llama", head_dim=64))
    assert full.cache == AttentionSpec(FULL, 2, 64, 64)
    [plain, *_] = cache_layers(config("gpt2", num_key_value_heads=None))
    assert plain.cache == AttentionSpec(FULL, 8, 32, 32)
    [window, *_] = cache_layers(config("gpt_oss", sliding_window=128))
    assert isinstance(window.cache, AttentionSpec)
    assert (window.cache.window, window.cache.sinks) == (128, True)
    assert has_sinks(cache_layers(config("gpt_oss")))
    assert not has_sinks(cache_layers(config("llama")))
    [cohere, *_] = cache_layers(config("cohere2", sliding_window=4096))
    assert isinstance(cohere.cache, AttentionSpec)
    assert cohere.cache.window == 4097


def test_mixed_head_sizes_of_gemma_4() -> None:
    """Full layers have heads of another size and number."""
    layers = cache_layers(
        config(
            "gemma4_text",
            head_dim=256,
            global_head_dim=512,
            attention_k_eq_v=True,
            num_global_key_value_heads=1,
            sliding_window=64,
            layer_types=["sliding_attention", "full_attention"] * 2,
        )
    )
    assert layers[0].cache == AttentionSpec(WINDOW, 2, 256, 256, 64)
    assert layers[1].cache == AttentionSpec(FULL, 1, 512, 512)


def test_index_keys_and_head_groups_are_read() -> None:
    """MiniMax-M3 keeps index keys in some layers; Llama-Nemotron counts heads by groups."""
    layers = cache_layers(
        config(
            "minimax_m3",
            sparse_attention_config={"sparse_attention_freq": [0, 1], "sparse_index_dim": 64},
        )
    )
    sizes = [
        layer.cache.index_head_dim for layer in layers if isinstance(layer.cache, AttentionSpec)
    ]
    assert sizes == [None, 64, None, None]
    [nas] = cache_layers(
        config("nemotron-nas", block_configs=[{"attention": {"n_heads_in_group": 2}}])
    )
    assert nas.cache == AttentionSpec(FULL, 4, 32, 32)


def test_the_text_part_is_found_however_deep() -> None:
    """Multimodal configs nest the language model, some of them twice."""
    nested = {"model_type": "x", "thinker_config": {"text_config": config("llama")}}
    assert text_fields(Fields.of(nested)).text("model_type") == "llama"
    assert kinds(nested) == [FULL] * 4


def test_drafts_of_the_checkpoint_are_counted() -> None:
    """Multi-token-prediction layers keep what a layer of the family keeps."""
    mla = config("deepseek_v3", kv_lora_rank=512, num_nextn_predict_layers=2)
    assert [layer.cache for layer in mtp_layers(mla)] == [MlaSpec(512, 0)] * 2
    assert len(mtp_layers(config("qwen3_next"))) == 1
    assert mtp_layers(config("llama")) == ()


def test_images_that_attend_in_both_directions() -> None:
    """A key of its own, the family, or Gemma-4's kind of attention say so."""
    assert mm_prefix({"model_type": "gemma3"})
    assert not mm_prefix({"model_type": "gemma3", "is_mm_prefix_lm": False})
    assert mm_prefix({"model_type": "gemma4", "use_bidirectional_attention": "vision"})
    assert not mm_prefix({"model_type": "gemma4"})
    assert not mm_prefix(config("llama"))


def test_length_keys_and_rope_are_collected() -> None:
    """Every length key present, and the rope block in either of its two forms."""
    old = length_spec(
        config("llama", max_position_embeddings=8192, rope_scaling={"type": "linear", "factor": 2})
    )
    assert (old.keys, old.rope_type, old.rope_factor) == (
        (("max_position_embeddings", 8192),),
        "linear",
        2.0,
    )
    new = length_spec(
        config(
            "gemma3_text",
            rope_parameters={
                "sliding_attention": {"rope_type": "default"},
                "full_attention": {"rope_type": "yarn", "original_max_position_embeddings": 512},
            },
        )
    )
    assert (new.rope_type, new.original_max_position_embeddings) == ("yarn", 512)
    assert length_spec(config("llama")).rope_type is None


@pytest.mark.parametrize(
    "own",
    [
        {},
        config("llama", num_hidden_layers=0),
        config("llama", num_hidden_layers=10**9),
        config("llama", num_attention_heads="eight"),
        config("gemma2", layer_types=["full_attention"]),
        config("nemotron_h", **MAMBA),
        config("kimi_linear", kv_lora_rank=512),
        config("deepseek_v3", kv_lora_rank=-1),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(own: dict[str, Any]) -> None:
    """Whatever is wrong is a ConfigError that names the key."""
    with pytest.raises(ConfigError):
        cache_layers(own)


@pytest.mark.parametrize(
    "own",
    [
        {"max_position_embeddings": 0},
        {"max_position_embeddings": 8192, "rope_scaling": {"type": "linear", "factor": 0}},
        {"max_position_embeddings": 1, "rope_scaling": {"type": "dynamic", "factor": 0.5}},
    ],
)
def test_no_config_gives_requests_without_a_length(own: dict[str, Any]) -> None:
    """A length below one token, or a factor that would make one, is named and not computed with."""
    with pytest.raises(ConfigError) as raised:
        length_spec(config("llama", **own))
    assert raised.value.code == "config_value_invalid"


def test_shipped_models_have_the_layers_their_makers_describe() -> None:
    """Negative control for the table above: counts of published models."""
    gemma = config("gemma3_text", num_hidden_layers=62, sliding_window=1024)
    assert Counter(kinds(gemma)) == {WINDOW: 52, FULL: 10}
    scout = config("llama4_text", num_hidden_layers=48)
    assert Counter(kinds(scout)) == {CHUNK: 36, FULL: 12}
    qwen = config("qwen3_next", **{**GDN, "num_hidden_layers": 48})
    assert Counter(kinds(qwen)) == {"gated_delta_net": 36, FULL: 12}
