"""What a quantisation config selects: lists of modules, storage schemes, the KV cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from app.catalog.hf_fields import ConfigError, Fields
from app.catalog.name_patterns import NamePattern

MatchMode = Literal["exact", "suffix", "substring", "wildcard"]
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
        if self._mode == "exact":
            return False
        if self._mode == "suffix":
            parts = name.split(".")
            return any(".".join(parts[first:]) in self._names for first in range(1, len(parts)))
        if self._mode in {"substring", "wildcard"} and any(entry in name for entry in self._names):
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


def unsupported(what: str) -> ConfigError:
    """Build the error for a storage format that vLLM or this calculation does not know."""
    return ConfigError("quantization_not_supported", (("quantization", what),))


def grouped(prefix: str, group_size: int) -> str:
    """Name of a scheme with groups of that many columns. Raises ConfigError."""
    suffix = {128: "", 64: "_g64", 32: "_g32", -1: "_channel"}.get(group_size)
    if suffix is None:
        raise unsupported(f"{prefix}, group_size {group_size}")
    return prefix + suffix


def ignored_modules(block: Fields, mode: MatchMode) -> NameList:
    """Read the list of modules left alone, whatever the method calls it."""
    keys = ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules", "exclude")
    key = next((key for key in keys if block.has(key)), keys[0])
    return NameList(block.texts(key), mode)


def declared_kv_cache(block: Fields) -> str | None:
    """KV cache dtype that a `kv_cache_scheme` block declares."""
    scheme = block.values.get("kv_cache_scheme")
    if not isinstance(scheme, dict):
        return None
    read = block.block("kv_cache_scheme")
    bits = read.integer("num_bits", 8, high=64)
    if read.text("type", "float") != "float":
        return None
    return {8: FP8_KV, 4: NVFP4_KV}.get(bits)
