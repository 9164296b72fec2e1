"""The values of `--kv-cache-dtype` and what one element or head costs in each."""

from __future__ import annotations

ELEMENT_BYTES = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}
FP8_KINDS = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"})
UNQUANTIZED = frozenset({"auto", "float16", "bfloat16"})


def element_bytes(cache_dtype: str, model_dtype: str) -> int:
    """Bytes of one stored element for the dtypes that store plain elements; `auto` is the model's."""
    return ELEMENT_BYTES[model_dtype if cache_dtype == "auto" else cache_dtype]
