"""Bytes of one token in every value of `--kv-cache-dtype`, for heads of 128 and of 64."""

import pytest

from app.core.kv_dtypes import (
    element_bytes,
    head_bytes,
    is_fp8,
    is_packed,
    is_quantized,
    latent_bytes,
)


@pytest.mark.parametrize(
    ("cache_dtype", "of_128", "of_64"),
    [
        ("auto", 512, 256),
        ("bfloat16", 512, 256),
        ("float16", 512, 256),
        ("fp8", 256, 128),
        ("fp8_e4m3", 256, 128),
        ("fp8_e5m2", 256, 128),
        ("fp8_inc", 256, 128),
        # Two float32 scales beside the values.
        ("int8_per_token_head", 264, 136),
        ("fp8_per_token_head", 264, 136),
        ("int4_per_token_head", 136, 72),
        # Half a byte a value, and one byte for every sixteen.
        ("nvfp4", 144, 72),
        ("nvfp4_4over6", 144, 72),
        # Key bits and value bits over 8; two bytes of norm with keys that are not FP8, four with
        # values; an even number.
        ("turboquant_k8v4", 196, 100),
        ("turboquant_4bit_nc", 134, 70),
        ("turboquant_k3v4_nc", 118, 62),
        ("turboquant_3bit_nc", 102, 54),
        # Half a byte a value, and one scale for every 32, for keys and values alike.
        ("ultraquant_4bit", 136, 68),
    ],
)
def test_a_key_and_a_value_of_one_head(cache_dtype: str, of_128: int, of_64: int) -> None:
    """What vLLM's page sizes come to for one token of one KV head, model in bfloat16."""
    assert head_bytes(cache_dtype, "bfloat16", 128, 128) == of_128
    assert head_bytes(cache_dtype, "bfloat16", 64, 64) == of_64
    assert isinstance(head_bytes(cache_dtype, "bfloat16", 64, 64), int)


def test_keys_and_values_may_differ_in_size() -> None:
    """Keys of 192 and values of 128 (MiMo-V2) are counted one by one."""
    assert head_bytes("auto", "bfloat16", 192, 128) == 2 * 320
    assert head_bytes("fp8", "bfloat16", 192, 128) == 320
    assert head_bytes("fp8_per_token_head", "bfloat16", 192, 128) == 320 + 8
    assert head_bytes("int4_per_token_head", "bfloat16", 192, 128) == 160 + 8
    assert head_bytes("nvfp4", "bfloat16", 192, 128) == 96 + 12 + 64 + 8


def test_a_slot_of_odd_size_gets_one_byte_more() -> None:
    """Heads of 60 in TurboQuant k3v4: 23 + 2 for the key, 30 + 4 for the value, made even."""
    assert head_bytes("turboquant_k3v4_nc", "bfloat16", 60, 60) == 60
    assert head_bytes("ultraquant_4bit", "bfloat16", 80, 80) == 2 * (40 + 3)


@pytest.mark.parametrize(
    ("cache_dtype", "size"),
    [
        ("auto", 1152),
        ("fp8", 576),
        ("fp8_ds_mla", 656),
        ("nvfp4_ds_mla", 352),
        ("int8_per_token_head", 584),
        ("int4_per_token_head", 296),
    ],
)
def test_a_latent_vector(cache_dtype: str, size: int) -> None:
    """512 values and 64 rotary ones (DeepSeek-V3); one vector, so no key and value of it."""
    found = latent_bytes(cache_dtype, "bfloat16", 576)
    assert (found, type(found)) == (size, int)


def test_auto_is_stored_as_the_model_is() -> None:
    """`auto` follows the model's dtype, a packed dtype is bytes whatever the model."""
    assert element_bytes("auto", "float32") == 4
    assert element_bytes("auto", "half") == 2
    assert element_bytes("fp8", "float32") == 1
    assert element_bytes("int8_per_token_head", "bfloat16") == 1
    assert element_bytes("bfloat16", "float32") == 2


def test_kinds_of_dtypes() -> None:
    """FP8 with one scale, quantised as a backend asks, packed: each dtype by its own name."""
    kinds = {
        "auto": (False, False, False),
        "bfloat16": (False, False, False),
        "fp8": (True, True, False),
        "fp8_inc": (True, True, False),
        "fp8_e4m3": (True, True, False),
        "fp8_e5m2": (True, True, False),
        "fp8_ds_mla": (False, True, False),
        "fp8_per_token_head": (False, True, False),
        "int8_per_token_head": (False, True, False),
        "nvfp4": (False, True, False),
        "turboquant_k8v4": (False, False, True),
        "ultraquant_4bit": (False, False, True),
    }
    assert {name: (is_fp8(name), is_quantized(name), is_packed(name)) for name in kinds} == kinds
