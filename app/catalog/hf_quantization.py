"""Turns quantisation blocks of a config into the core's Quantization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.catalog.hf_defaults import completed
from app.catalog.hf_fields import Fields, text_fields
from app.catalog.hf_tensors import family_of, tensor_groups
from app.catalog.module_names import module_names
from app.catalog.quantization_formats import read_selection
from app.catalog.quantization_selection import Selection
from app.core.checkpoint import Quantization
from app.core.model_spec import TensorGroup
from app.core.storage_schemes import UNQUANTIZED

# Classes that a scheme for all linear layers leaves alone; they have to be named.
_UNLESS_NAMED = frozenset({"lm_head", "vision", "audio", "mtp", "ssm_ba", "router", "latent"})
# Families whose FP8 block scales are FP32 in the files (others: BF16).
_FP32_BLOCK_SCALES = frozenset({"deepseek_v3", "deepseek_v32", "kimi_k2"})


def read_quantization(
    config: Mapping[str, object],
    hf_quant_config: Mapping[str, object] | None = None,
    *,
    assume_unknown: bool = False,
) -> tuple[Quantization, str | None]:
    """Read how a checkpoint is stored, and the KV cache dtype it declares.

    `hf_quant_config` is the file of that name beside the config (modelopt); the config's own
    block wins. Raises ConfigError (`quantization_not_supported`, `quantization_pattern_unknown`
    and what `read_config` raises), and nothing else.
    """
    fields = Fields.of(config)
    block = quantization_block(fields, hf_quant_config)
    if block is None:
        return Quantization(), None
    family = family_of(fields, assume_unknown=assume_unknown)
    fields = Fields(completed(config, family))
    selection = _for_family(read_selection(block), family, text_fields(fields))
    groups = tensor_groups(fields, family)
    layers = 1 + max((group.layer for group in groups), default=0)
    chosen = [(group, _choose(group, selection, layers)) for group in groups if group.quantizable]
    return _summary(selection.method, chosen), selection.kv_cache_scheme


def quantization_block(
    fields: Fields, hf_quant_config: Mapping[str, object] | None = None
) -> Fields | None:
    """Return the quantisation block of a config, of its text part, or the file beside it."""
    for owner in (fields, text_fields(fields)):
        if owner.has("quantization_config"):
            return owner.block("quantization_config")
    return None if hf_quant_config is None else Fields.of(hf_quant_config, "hf_quant_config.")


def _for_family(selection: Selection, family: str, text: Fields) -> Selection:
    """DeepSeek's files keep FP32 block scales; DeepSeek-V4's experts are MXFP4."""
    if family == "deepseek_v4":
        experts = "mxfp4" if text.text("expert_dtype") == "fp4" else ""
        return replace(selection, expert_scheme=experts)
    if selection.scheme.startswith("fp8_block"):
        scheme = "fp8_block_f32" if family in _FP32_BLOCK_SCALES else "fp8_block"
        return replace(selection, scheme=scheme)
    return selection


def _choose(group: TensorGroup, selection: Selection, num_hidden_layers: int) -> str:
    names = module_names(group, num_hidden_layers)
    for target, scheme in selection.targets:
        if target.selects(names):
            return scheme
    if selection.ignored.selects(names):
        return UNQUANTIZED
    if group.module == "expert":
        return selection.expert_scheme or selection.scheme or UNQUANTIZED
    head = group.module == "lm_head" and selection.lm_head
    if selection.experts_only or (group.module in _UNLESS_NAMED and not head):
        return UNQUANTIZED
    return selection.scheme or UNQUANTIZED


def _summary(method: str, chosen: Iterable[tuple[TensorGroup, str]]) -> Quantization:
    """Say it per class and part where that holds, by name where it differs, by layer at last."""
    chosen = list(chosen)
    schemes = _most_common((group.module, scheme) for group, scheme in chosen if _main(group))
    parts = _most_common((group.part, scheme) for group, scheme in chosen if not _main(group))
    schemes |= parts
    left = [(group, scheme) for group, scheme in chosen if schemes[_class(group)] != scheme]
    different = {group.name for group, _ in left}
    named = [(group, scheme) for group, scheme in chosen if group.name in different]
    by_name = _most_common((group.name, scheme) for group, scheme in named)
    by_layer = {
        f"{group.layer}.{group.name}": scheme
        for group, scheme in named
        if by_name[group.name] != scheme
    }
    kept = {key: scheme for key, scheme in schemes.items() if scheme != UNQUANTIZED or key in parts}
    return Quantization(method, tuple(kept.items()), tuple((by_layer | by_name).items()))


def _main(group: TensorGroup) -> bool:
    return group.part == "model"


def _class(group: TensorGroup) -> str:
    return group.module if _main(group) else group.part


def _most_common(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    counts: dict[str, Counter[str]] = {}
    for key, scheme in pairs:
        counts.setdefault(key, Counter())[scheme] += 1
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}
