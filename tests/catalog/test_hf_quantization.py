"""Quantisation blocks of configs: which tensors are stored how, the KV cache, what is refused."""

from collections.abc import Mapping

import pytest

from app.catalog.compressed_tensors import LARGEST_GROUP_LIST
from app.catalog.hf_config import read_config
from app.catalog.hf_fields import ConfigError
from app.catalog.hf_quantization import read_quantization
from app.catalog.quantization_selection import LARGEST_REGEX_LIST
from app.core.checkpoint import Quantization
from app.core.parameters import SchemeBook
from app.core.storage_schemes import STORAGE_SCHEMES, UNQUANTIZED
from tests.configs import LLAMA_CONFIG

Block = Mapping[str, object]
LLAMA = LLAMA_CONFIG | {"num_hidden_layers": 4}
QWEN_MOE: Block = {
    **LLAMA,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "head_dim": 128,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 768,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "mlp_only_layers": [],
}


def stored(block: object, config: Block = LLAMA) -> dict[str, str]:
    """Return how each linear layer is stored, by `layer.name`, the plain ones left out."""
    full = {**config, "quantization_config": block}
    return schemes_of(full, read_quantization(full)[0])


def schemes_of(config: Block, quantization: Quantization) -> dict[str, str]:
    """Look every quantisable tensor of a config up, as the core does."""
    book = SchemeBook(quantization)
    named = {
        f"{group.layer}.{group.name}": book.name(group)
        for group in read_config(config).tensors
        if group.quantizable
    }
    return {name: scheme for name, scheme in named.items() if scheme != UNQUANTIZED}


def refusal(block: object, config: Block = LLAMA) -> ConfigError:
    """Return the error that a quantisation block ends in."""
    with pytest.raises(ConfigError) as caught:
        read_quantization({**config, "quantization_config": block})
    return caught.value


def compressed(weights: Block, *, layout: str = "", **rest: object) -> dict[str, object]:
    """Build a compressed-tensors block with one group for all linear layers."""
    group = {"targets": ["Linear"], "weights": weights}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": group},
        **rest,
    }


def integers(bits: int, **rest: object) -> Block:
    """Weights of compressed-tensors in integers."""
    return {"num_bits": bits, "type": "int", **rest}


def floats(bits: int, strategy: str, **rest: object) -> Block:
    """Weights of compressed-tensors in floats."""
    return {"num_bits": bits, "type": "float", "strategy": strategy, **rest}


PACKED = "pack-quantized"
GROUPED = {"strategy": "group", "group_size": 128}
WHOLE = [
    ({"quant_method": "fp8"}, "fp8", "fp8_tensor"),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", "fp8_block"),
    ({"quant_method": "fbgemm_fp8"}, "fbgemm_fp8", "fp8_channel"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "modelopt", "fp8_tensor"),
    ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "modelopt", "fp8_block"),
    ({"quant_algo": "NVFP4"}, "modelopt_fp4", "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "MXFP8"}, "modelopt_mxfp8", "mxfp8"),
    (compressed(floats(8, "tensor")), "compressed-tensors", "fp8_tensor"),
    (compressed(floats(8, "channel")), "compressed-tensors", "fp8_channel"),
    (compressed(floats(8, "block")), "compressed-tensors", "fp8_block"),
    (compressed(floats(4, "tensor_group", group_size=16)), "compressed-tensors", "nvfp4"),
    (compressed(floats(4, "group", group_size=32)), "compressed-tensors", "mxfp4"),
    (compressed(integers(8, strategy="channel")), "compressed-tensors", "int8_channel"),
    (compressed(integers(8), layout=PACKED), "compressed-tensors", "w8a16"),
    (compressed(integers(4, **GROUPED), layout=PACKED), "compressed-tensors", "w4a16"),
    (
        compressed(integers(4, symmetric=False, **GROUPED), layout=PACKED),
        "compressed-tensors",
        "w4a16_zp",
    ),
    (
        compressed(integers(4, strategy="channel"), layout=PACKED),
        "compressed-tensors",
        "w4a16_channel",
    ),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq", "awq"),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "awq", "awq_g64"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq", "gptq_g32"),
    ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq", "gptq_channel"),
    ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "gptq", "gptq_int8"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes", "bnb_nf4"),
    (
        {
            "quant_method": "quark",
            "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}},
        },
        "quark",
        "fp8_tensor",
    ),
]


@pytest.mark.parametrize(("block", "method", "scheme"), WHOLE)
def test_each_method_stores_every_linear_layer(block: Block, method: str, scheme: str) -> None:
    """Seven layers in each of four decoder layers; embedding, head and norms stay as they are."""
    found = stored(block)
    assert set(found.values()) == {scheme}
    assert len(found) == 4 * 7
    assert scheme in STORAGE_SCHEMES
    full = {**LLAMA, "quantization_config": block}
    assert read_quantization(full)[0].method == method


def test_a_checkpoint_without_a_block_is_plain() -> None:
    """No block, or an empty value for it: everything in the model's dtype."""
    assert read_quantization(LLAMA) == (Quantization(), None)
    assert read_quantization({**LLAMA, "quantization_config": None}) == (Quantization(), None)


def test_the_file_beside_the_config_counts_only_without_a_block() -> None:
    """modelopt writes hf_quant_config.json; the config's own block wins."""
    beside = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    quantization, kv_cache = read_quantization(LLAMA, beside)
    assert (quantization.method, kv_cache) == ("modelopt_fp4", "fp8_e4m3")
    own = {**LLAMA, "quantization_config": {"quant_method": "fp8"}}
    assert read_quantization(own, beside)[0].method == "fp8"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": None}, None),
        (
            compressed(floats(8, "tensor"), kv_cache_scheme={"num_bits": 8, "type": "float"}),
            "fp8",
        ),
        (compressed(floats(8, "tensor"), kv_cache_scheme=None), None),
        (compressed(floats(8, "tensor"), kv_cache_scheme={"num_bits": 8, "type": "int"}), None),
    ],
)
def test_the_kv_cache_a_checkpoint_declares(block: Block, expected: str | None) -> None:
    """FP8 and NVFP4 caches are declared by modelopt and compressed-tensors."""
    found = read_quantization({**LLAMA, "quantization_config": block})[1]
    assert found == ("fp8_e4m3" if expected == "fp8" else expected)


ATTENTION = {f"{layer}.self_attn.{kind}_proj" for layer in range(4) for kind in "qkvo"}


@pytest.mark.parametrize(
    ("block", "plain"),
    [
        (compressed(floats(8, "channel"), ignore=["lm_head", "re:.*self_attn.*"]), ATTENTION),
        (
            compressed(floats(8, "channel"), ignore=["model.layers.2.mlp.down_proj"]),
            {"2.mlp.down_proj"},
        ),
        (
            {"quant_algo": "NVFP4", "ignore": ["model.layers.0.self_attn*", "lm_head"]},
            {name for name in ATTENTION if name.startswith("0.")},
        ),
        (
            {"quant_method": "awq", "modules_to_not_convert": ["self_attn.o_proj"]},
            {f"{layer}.self_attn.o_proj" for layer in range(4)},
        ),
        (
            {"quant_method": "fp8", "ignored_layers": ["model.layers.1.self_attn.qkv_proj"]},
            {f"1.self_attn.{kind}_proj" for kind in "qkv"},
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "llm_int8_skip_modules": ["lm_head", "layers.3.mlp"],
            },
            {f"3.mlp.{kind}_proj" for kind in ("gate", "up", "down")},
        ),
    ],
)
def test_modules_that_a_list_leaves_alone(block: Block, plain: set[str]) -> None:
    """Names, patterns, globs, parts of names and merged layers, layer by layer."""
    assert stored({**block, **everything(block)}).keys() - stored(block).keys() == plain
    assert len(stored(block)) == 28 - len(plain)


def everything(block: Block) -> dict[str, object]:
    """The same block with an empty list."""
    lists = ("ignore", "modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules")
    return {key: [] for key in lists if key in block}


def test_a_config_of_several_precisions() -> None:
    """modelopt's MIXED_PRECISION names each layer; nothing else is quantised."""
    found = stored(
        {
            "quant_method": "modelopt",
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {
                "model.layers.0.mlp.down_proj": {"quant_algo": "NVFP4", "group_size": 16},
                "model.layers.1.self_attn.q_proj": {"quant_algo": "FP8"},
            },
        }
    )
    assert found == {"0.mlp.down_proj": "nvfp4", "1.self_attn.q_proj": "fp8_tensor"}


def test_groups_with_targets_of_their_own() -> None:
    """compressed-tensors: a group that names modules wins over the one for all layers."""
    block = compressed(floats(8, "channel"), ignore=["re:.*gate_proj"])
    block["config_groups"] = {
        "attention": {
            "targets": [r"re:.*self_attn\.(q|k|v|o)_proj$"],
            "weights": floats(8, "block"),
        },
        "rest": {"targets": ["Linear"], "weights": floats(4, "tensor_group", group_size=16)},
    }
    found = stored(block)
    assert {name for name, scheme in found.items() if scheme == "fp8_block"} == ATTENTION
    assert {name for name, scheme in found.items() if scheme == "nvfp4"} == {
        f"{layer}.mlp.{kind}_proj" for layer in range(4) for kind in ("up", "down")
    }


def test_mxfp4_is_for_experts() -> None:
    """The method quantises experts alone, and nothing of a dense model."""
    found = stored({"quant_method": "mxfp4"}, QWEN_MOE)
    assert set(found.values()) == {"mxfp4"}
    assert all(".experts." in name for name in found)
    assert stored({"quant_method": "mxfp4"}) == {}


def test_routers_and_heads_stay_plain_unless_named() -> None:
    """A scheme for all layers leaves router and head alone; GPTQ says so for the head."""
    found = stored({"quant_method": "fp8"}, QWEN_MOE)
    assert not [name for name in found if name.endswith("mlp.gate")]
    assert "-2.lm_head" not in stored({"quant_method": "gptq", "bits": 4})
    assert "-2.lm_head" in stored({"quant_method": "gptq", "bits": 4, "lm_head": True})


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ({"quant_method": "wat"}, "wat"),
        ({"quant_method": "gguf"}, "gguf"),
        ({}, "none given"),
        ({"quant_method": "awq", "bits": 3}, "awq, 3 bits"),
        ({"quant_method": "gptq", "bits": 2}, "gptq, 2 bits"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 48}, "gptq, group_size 48"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "fp8, weight_block_size 64"),
        ({"quant_algo": "INT4_AWQ"}, "modelopt INT4_AWQ"),
        ({"quant_method": "quark"}, "quark"),
        (compressed({}), "compressed-tensors without weights"),
        (compressed(integers(3), layout=PACKED), "compressed-tensors pack-quantized, 3 bits"),
        (compressed(floats(6, "tensor")), "compressed-tensors float, 6 bits, tensor"),
    ],
)
def test_what_is_not_supported_is_named(block: Block, named: str) -> None:
    """The reason carries the method and what of it is not known."""
    error = refusal(block)
    assert error.code == "quantization_not_supported"
    assert dict(error.numbers) == {"quantization": named}


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("fp8", "config_value_invalid"),
        ([], "config_value_invalid"),
        ({"quant_method": 8}, "config_value_invalid"),
        ({"quant_method": "fp8", "ignored_layers": "lm_head"}, "config_value_invalid"),
        ({"quant_method": "fp8", "ignored_layers": [1]}, "config_value_invalid"),
        (compressed(floats(8, "tensor"), ignore=["re:(?=x)"]), "quantization_pattern_unknown"),
        (
            compressed(
                floats(8, "tensor"), ignore=[f"re:x{n}" for n in range(LARGEST_REGEX_LIST + 1)]
            ),
            "config_too_large",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {str(n): {} for n in range(LARGEST_GROUP_LIST + 1)},
            },
            "quantization_not_supported",
        ),
    ],
)
def test_blocks_that_are_no_such_thing_are_refused(block: object, code: str) -> None:
    """Wrong types, unknown patterns and endless lists end in a named reason."""
    assert refusal(block).code == code
