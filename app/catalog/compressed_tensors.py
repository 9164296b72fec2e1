"""Storage schemes of compressed-tensors configs."""

from __future__ import annotations

from app.catalog.hf_fields import Fields
from app.catalog.quantization_selection import (
    NameList,
    Selection,
    declared_kv_cache,
    grouped,
    ignored_modules,
    unsupported,
)

LARGEST_GROUP_LIST = 64


def compressed_tensors(block: Fields) -> Selection:
    """Read `config_groups`, `ignore` and `kv_cache_scheme`. Raises ConfigError."""
    groups = block.block("config_groups")
    if len(groups.values) > LARGEST_GROUP_LIST:
        raise unsupported("compressed-tensors, too many config_groups")
    targets: list[tuple[NameList, str]] = []
    default = ""
    for name in groups.values:
        group = groups.block(str(name))
        layout = group.text("format", block.text("format"))
        scheme = _compressed_scheme(group.block("weights"), layout)
        names = group.texts("targets")
        if "Linear" in names:
            default = scheme
        named = tuple(target for target in names if target != "Linear")
        if named:
            targets.append((NameList(named, "suffix"), scheme))
    return Selection(
        "compressed-tensors",
        default,
        tuple(targets),
        ignored_modules(block, "suffix"),
        kv_cache_scheme=declared_kv_cache(block),
    )


def _compressed_scheme(weights: Fields, layout: str) -> str:
    if not weights.values:
        raise unsupported("compressed-tensors without weights")
    bits, kind = weights.integer("num_bits", 8, high=64), weights.text("type", "int")
    strategy = weights.text("strategy", "tensor")
    group = weights.integer("group_size", 0, low=-1)
    if kind == "float":
        return _compressed_float(bits, strategy, group)
    if bits == 8:  # noqa: PLR2004 - bits of an element
        return "w8a16" if layout == "pack-quantized" else "int8_channel"
    if bits == 4 and layout in {"pack-quantized", ""}:  # noqa: PLR2004 - bits of an element
        size = -1 if strategy == "channel" or group <= 0 else group
        return grouped("w4a16" if weights.flag("symmetric", default=True) else "w4a16_zp", size)
    raise unsupported(f"compressed-tensors {layout}, {bits} bits")


def _compressed_float(bits: int, strategy: str, group: int) -> str:
    known = {
        (8, "tensor"): "fp8_tensor",
        (8, "channel"): "fp8_channel",
        (8, "block"): "fp8_block",
        (8, "group"): "mxfp8",
        (4, "tensor_group"): "nvfp4",
        (4, "group"): "nvfp4" if group == 16 else "mxfp4",  # noqa: PLR2004 - NVFP4's group
    }
    scheme = known.get((bits, strategy))
    if scheme is None:
        raise unsupported(f"compressed-tensors float, {bits} bits, {strategy}")
    return scheme
