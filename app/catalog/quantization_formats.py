"""What the quantisation blocks of configs say: which modules are stored how, and the KV cache."""

from __future__ import annotations

from collections.abc import Callable

from app.catalog.compressed_tensors import compressed_tensors
from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.quantization_selection import (
    FP8_KV,
    NVFP4_KV,
    NameList,
    Selection,
    declared_kv_cache,
    grouped,
    ignored_modules,
    unsupported,
)

LARGEST_LAYER_LIST = 65_536


def read_selection(block: Fields) -> Selection:
    """Read a quantisation block of any method. Raises ConfigError."""
    method = block.text("quant_method").lower()
    if block.has("quantization"):
        return _modelopt(block.block("quantization"))
    if not method and block.has("quant_algo"):
        method = "modelopt"
    reader = _READERS.get(method)
    if reader is None:
        raise unsupported(method or "none given")
    return reader(block)


def _fp8(block: Fields) -> Selection:
    shape = block.integers("weight_block_size", high=2**16)
    scheme = "fp8_tensor"
    if shape:
        if shape != (128, 128):
            raise unsupported(f"fp8, weight_block_size {shape[0]}")
        scheme = "fp8_block_ue8m0" if block.text("scale_fmt") == "ue8m0" else "fp8_block"
    return Selection("fp8", scheme, ignored=ignored_modules(block, "suffix"))


_MODELOPT_ALGORITHMS = {
    "FP8": "fp8_tensor",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8_channel",
    "FP8_PB_WO": "fp8_block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "W4A8_NVFP4_FP8": "nvfp4",
    "MXFP8": "mxfp8",
    "MXFP4": "mxfp4",
}
_MODELOPT_METHODS = {"nvfp4": "modelopt_fp4", "mxfp8": "modelopt_mxfp8"}


def _modelopt(block: Fields) -> Selection:
    algorithm = block.text("quant_algo").upper()
    kv_cache = _modelopt_kv_cache(block)
    ignored = ignored_modules(block, "wildcard")
    if algorithm == "MIXED_PRECISION":
        targets = _quantized_layers(block)
        return Selection("modelopt_mixed", "", targets, ignored, kv_cache_scheme=kv_cache)
    scheme = _modelopt_scheme(algorithm)
    method = _MODELOPT_METHODS.get(scheme, "modelopt")
    return Selection(method, scheme, ignored=ignored, kv_cache_scheme=kv_cache)


def _modelopt_scheme(algorithm: str) -> str:
    if algorithm not in _MODELOPT_ALGORITHMS:
        raise unsupported(f"modelopt {algorithm}")
    return _MODELOPT_ALGORITHMS[algorithm]


def _quantized_layers(block: Fields) -> tuple[tuple[NameList, str], ...]:
    layers = block.block("quantized_layers")
    if len(layers.values) > LARGEST_LAYER_LIST:
        raise ConfigError(
            "config_too_large",
            (
                ("key", "quantized_layers"),
                ("entries", len(layers.values)),
                ("largest", LARGEST_LAYER_LIST),
            ),
        )
    by_scheme: dict[str, list[str]] = {}
    for name in layers.values:
        algorithm = layers.block(str(name)).text("quant_algo").upper()
        by_scheme.setdefault(_modelopt_scheme(algorithm), []).append(str(name))
    return tuple((NameList(tuple(names), "exact"), key) for key, names in by_scheme.items())


def _modelopt_kv_cache(block: Fields) -> str | None:
    algorithm = block.values.get("kv_cache_quant_algo")
    if isinstance(algorithm, str):
        return {"FP8": FP8_KV, "NVFP4": NVFP4_KV}.get(algorithm.upper())
    return declared_kv_cache(block)


def _awq(block: Fields) -> Selection:
    bits = block.first_integer("bits", "w_bit", default=4, high=64)
    if bits != 4:  # noqa: PLR2004 - AWQ is a four-bit format
        raise unsupported(f"awq, {bits} bits")
    size = block.first_integer("group_size", "q_group_size", default=128, low=-1)
    scheme = grouped("awq", size)
    return Selection("awq", scheme, ignored=ignored_modules(block, "substring"))


def _gptq(block: Fields) -> Selection:
    bits = block.integer("bits", 4, high=64)
    size = block.integer("group_size", 128, low=-1)
    if bits not in {4, 8}:
        raise unsupported(f"gptq, {bits} bits")
    scheme = grouped("gptq", size) if bits == 4 else "gptq_int8"  # noqa: PLR2004 - bits
    return Selection(
        "gptq", scheme, ignored=ignored_modules(block, "substring"), lm_head=block.flag("lm_head")
    )


def _mxfp4(block: Fields) -> Selection:
    return Selection(
        "mxfp4", "mxfp4", ignored=ignored_modules(block, "wildcard"), experts_only=True
    )


def _mxfp8(block: Fields) -> Selection:
    return Selection("modelopt_mxfp8", "mxfp8", ignored=ignored_modules(block, "wildcard"))


def _quark(block: Fields) -> Selection:
    weight = block.block("global_quant_config").block("weight")
    dtype, scheme = weight.text("dtype"), weight.text("qscheme")
    known = {
        ("fp4", "per_group"): "mxfp4",
        ("fp8_e4m3", "per_tensor"): "fp8_tensor",
        ("fp8_e4m3", "per_channel"): "fp8_channel",
        ("int8", "per_channel"): "int8_channel",
    }
    if (dtype, scheme) not in known:
        raise unsupported(f"quark {dtype} {scheme}".strip())
    return Selection("quark", known[dtype, scheme], ignored=ignored_modules(block, "wildcard"))


def _bitsandbytes(block: Fields) -> Selection:
    scheme = "bnb_nf4" if block.flag("load_in_4bit") else "int8_channel"
    skipped = NameList(block.texts("llm_int8_skip_modules"), "substring")
    return Selection("bitsandbytes", scheme, ignored=skipped)


def _fbgemm(block: Fields) -> Selection:
    return Selection("fbgemm_fp8", "fp8_channel", ignored=ignored_modules(block, "suffix"))


_READERS: dict[str, Callable[[Fields], Selection]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "compressed-tensors": compressed_tensors,
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _gptq,
    "mxfp4": _mxfp4,
    "mxfp8": _mxfp8,
    "quark": _quark,
    "bitsandbytes": _bitsandbytes,
}
