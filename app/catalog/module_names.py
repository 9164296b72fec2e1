"""Full names of a model's tensors, as quantisation configs may write them."""

from __future__ import annotations

from app.core.merged_layers import merged_name
from app.core.model_spec import TensorGroup

_LAYERS = ("model.layers", "model.language_model.layers", "language_model.model.layers")
_EXPERTS = ".experts."


def module_names(group: TensorGroup, num_hidden_layers: int) -> tuple[str, ...]:
    """Names a group goes by, the likeliest first.

    `model.layers.3.self_attn.q_proj`, the same below a multimodal wrapper, the merged name, for
    experts the list of them and the first of them; drafts count as layers after the last one, and
    as a first one of their own.
    """
    paths = _paths(group.name)
    if group.part == "mtp":
        inner = [path.removeprefix("mtp.").removeprefix("layers.") for path in paths]
        first = [f"mtp.layers.0.{path}" for path in inner]
        draft = [f"{layers}.{num_hidden_layers}.{path}" for layers in _LAYERS[:1] for path in inner]
        return (*paths, *first, *draft)
    if group.layer < 0:
        return (*paths, *(f"model.{path}" for path in paths))
    return tuple(f"{layers}.{group.layer}.{path}" for path in paths for layers in _layers(group))


def _layers(group: TensorGroup) -> tuple[str, ...]:
    return ("backbone.layers",) if group.name.startswith("mixer.") else _LAYERS


def _paths(name: str) -> list[str]:
    head, _, last = name.rpartition(".")
    if _EXPERTS in f"{name}.":
        owner = head.removesuffix(".experts")
        return [f"{owner}.experts.0.{last}", name, f"{owner}.experts"]
    merged = merged_name(name)
    return [name] if merged == name else [name, merged]
