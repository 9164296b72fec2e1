"""What the quantisation blocks of configs say: which modules are stored how, and the KV cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.name_patterns import NamePattern

MatchMode = Literal["suffix", "substring", "wildcard", "regex"]
LARGEST_REGEX_LIST = 64
FP8_KV, NVFP4_KV = "fp8_e4m3", "nvfp4"


class NameList:
    """A list of names or patterns, matched as the quantisation method does."""

    def __init__(self, entries: tuple[str, ...], mode: MatchMode) -> None:
        """Split the list into exact names and patterns. Raises ConfigError."""
        regexes = [entry[3:] for entry in entries if entry.startswith("re:")]
        if len(regexes) > LARGEST_REGEX_LIST:
            raise ConfigError(
                "config_too_large",
                (("key", "ignore"), ("entries", len(regexes)), ("largest", LARGEST_REGEX_LIST)),
            )
        self._mode = mode
        self._patterns = [NamePattern(regex) for regex in dict.fromkeys(regexes)]
        self._names = frozenset(entry for entry in entries if not entry.startswith("re:"))
        self._globs = [name for name in self._names if "*" in name or "?" in name]

    def selects(self, names: tuple[str, ...]) -> bool:
        """True when one of a module's names is in the list."""
        return any(self._selects(name) for name in names)

    def _selects(self, name: str) -> bool:
        if name in self._names or any(pattern.matches(name) for pattern in self._patterns):
            return True
        if self._mode == "suffix":
            return any(name.endswith(f".{entry}") for entry in self._names)
        if self._mode == "substring" or self._mode == "wildcard":
            if any(entry in name for entry in self._names):
                return True
        return any(fnmatchcase(name, glob) for glob in self._globs)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a quantisation config selects.

    `scheme` holds for every linear layer that nothing else names, empty for none. `targets` come
    first, in order; `ignored` last. `experts_only`: nothing but experts is quantised.
    """

    method: str
    scheme: str = ""
    targets: tuple[tuple[NameList, str], ...] = ()
    ignored: NameList = field(default_factory=lambda: NameList((), "suffix"))
    experts_only: bool = False
    expert_scheme: str = ""
    lm_head: bool = False
    kv_cache_scheme: str | None = None


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


def unsupported(what: str) -> ConfigError:
    """Build the error for a storage format that vLLM or this calculation does not know."""
    return ConfigError("quantization_not_supported", (("quantization", what),))


def _grouped(prefix: str, group_size: int) -> str:
    suffix = {128: "", 64: "_g64", 32: "_g32"}.get(group_size)
    if suffix is None:
        raise unsupported(f"{prefix}, group_size {group_size}")
    return prefix + suffix


def _fp8(block: Fields) -> Selection:
    shape = block.integers("weight_block_size", high=2**16)
    scheme = "fp8_tensor"
    if shape:
        if shape != (128, 128):
            raise unsupported(f"fp8, weight_block_size {shape[0]}")
        scheme = "fp8_block_ue8m0" if block.text("scale_fmt") == "ue8m0" else "fp8_block"
    return Selection("fp8", scheme, ignored=_ignored(block, "suffix"))


def _ignored(block: Fields, mode: MatchMode) -> NameList:
    keys = ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules", "exclude")
    key = next((key for key in keys if block.has(key)), keys[0])
    return NameList(block.texts(key), mode)


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
    ignored = _ignored(block, "wildcard")
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
    return tuple((NameList(tuple(names), "suffix"), key) for key, names in by_scheme.items())


LARGEST_LAYER_LIST = 65_536


def _modelopt_kv_cache(block: Fields) -> str | None:
    algorithm = block.values.get("kv_cache_quant_algo")
    if isinstance(algorithm, str):
        return {"FP8": FP8_KV, "NVFP4": NVFP4_KV}.get(algorithm.upper())
    return _kv_cache_scheme(block)


def _kv_cache_scheme(block: Fields) -> str | None:
    scheme = block.values.get("kv_cache_scheme")
    if not isinstance(scheme, dict):
        return None
    read = block.block("kv_cache_scheme")
    bits = read.integer("num_bits", 8, high=64)
    if read.text("type", "float") != "float":
        return None
    return {8: FP8_KV, 4: NVFP4_KV}.get(bits)


def _compressed_tensors(block: Fields) -> Selection:
    groups = block.block("config_groups")
    if len(groups.values) > LARGEST_REGEX_LIST:
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
        _ignored(block, "suffix"),
        kv_cache_scheme=_kv_cache_scheme(block),
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
        if strategy == "channel" or group <= 0:
            return "w4a16_channel"
        return _grouped("w4a16" if weights.flag("symmetric", default=True) else "w4a16_zp", group)
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


def _awq(block: Fields) -> Selection:
    bits = block.first_integer("bits", "w_bit", default=4, high=64)
    if bits != 4:  # noqa: PLR2004 - AWQ is a four-bit format
        raise unsupported(f"awq, {bits} bits")
    size = block.first_integer("group_size", "q_group_size", default=128, low=-1)
    scheme = _grouped("awq", size)
    return Selection("awq", scheme, ignored=_ignored(block, "substring"))


def _gptq(block: Fields) -> Selection:
    bits = block.integer("bits", 4, high=64)
    size = block.integer("group_size", 128, low=-1)
    if bits not in {4, 8}:
        raise unsupported(f"gptq, {bits} bits")
    scheme = _grouped("gptq", size) if bits == 4 else "gptq_int8"  # noqa: PLR2004 - bits
    return Selection(
        "gptq", scheme, ignored=_ignored(block, "substring"), lm_head=block.flag("lm_head")
    )


def _mxfp4(block: Fields) -> Selection:
    return Selection("mxfp4", "mxfp4", ignored=_ignored(block, "wildcard"), experts_only=True)


def _mxfp8(block: Fields) -> Selection:
    return Selection("modelopt_mxfp8", "mxfp8", ignored=_ignored(block, "wildcard"))


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
    return Selection("quark", known[dtype, scheme], ignored=_ignored(block, "wildcard"))


def _bitsandbytes(block: Fields) -> Selection:
    scheme = "bnb_nf4" if block.flag("load_in_4bit") else "int8_channel"
    skipped = NameList(block.texts("llm_int8_skip_modules"), "substring")
    return Selection("bitsandbytes", scheme, ignored=skipped)


def _fbgemm(block: Fields) -> Selection:
    return Selection("fbgemm_fp8", "fp8_channel", ignored=_ignored(block, "suffix"))


_READERS: dict[str, Callable[[Fields], Selection]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "compressed-tensors": _compressed_tensors,
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _gptq,
    "mxfp4": _mxfp4,
    "mxfp8": _mxfp8,
    "quark": _quark,
    "bitsandbytes": _bitsandbytes,
}
