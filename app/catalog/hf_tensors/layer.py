"""Builder for the tensor groups of one layer (or of the places before and after the layers)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from app.core.model_spec import Sharding, TensorGroup

_BIAS_FOLLOWS = frozenset(
    {"column", "kv_heads", "replicated", "expert_column", "shared_column", "vocab"}
)
_BIAS_OTHERWISE: dict[str, Sharding] = {
    "row": "replicated",
    "shared_row": "replicated",
    "expert_row": "expert",
}


@dataclass(slots=True)
class LayerTensors:
    """Collects TensorGroups that share a layer and a part; `prefix` goes before their names."""

    layer: int
    part: str = "model"
    prefix: str = ""
    groups: list[TensorGroup] = field(default_factory=list)

    def linear(
        self,
        name: str,
        module: str,
        shape: tuple[int, int],
        sharding: Sharding = "replicated",
        *,
        units: int = 0,
        bias: bool = False,
        count: int = 1,
        least_share: int = 0,
    ) -> None:
        """Add `count` linear layers (out_features, in_features) that quantisation may touch."""
        made = TensorGroup(name, module, self.layer, *shape, count, sharding, units)
        self._add(replace(made, quantizable=True, least_share=least_share), bias=bias)

    def plain(
        self,
        name: str,
        module: str,
        shape: tuple[int, int],
        sharding: Sharding = "replicated",
        *,
        units: int = 0,
        bias: bool = False,
        loaded_dtype: str | None = None,
        fallback_dtype: str | None = None,
    ) -> None:
        """Add a matrix that stays in the model's dtype, or that vLLM holds in another."""
        made = TensorGroup(name, module, self.layer, *shape, 1, sharding, units)
        self._add(
            replace(made, loaded_dtype=loaded_dtype, fallback_dtype=fallback_dtype), bias=bias
        )

    def unpacked(self, name: str, module: str, shape: tuple[int, int], loaded_dtype: str) -> None:
        """Add a replicated linear layer that the files may quantise and vLLM never does."""
        made = TensorGroup(name, module, self.layer, *shape, quantizable=True)
        self._add(replace(made, loaded_dtype=loaded_dtype), bias=False)

    def vector(
        self,
        name: str,
        module: str,
        size: int,
        sharding: Sharding = "replicated",
        *,
        units: int = 0,
        count: int = 1,
        dtype: str | None = None,
    ) -> None:
        """Add a vector: a norm, a bias, a per-head parameter."""
        made = TensorGroup(name, module, self.layer, size, 1, count, sharding, units)
        self._add(replace(made, dtype=dtype), bias=False)

    def norms(self, size: int, *names: str) -> None:
        """Add norm weights of one size."""
        for name in names:
            self.vector(name, "norm", size)

    def _add(self, group: TensorGroup, *, bias: bool) -> None:
        if not (group.out_features and group.in_features and group.count):
            return
        self.groups.append(replace(group, name=self.prefix + group.name, part=self.part))
        if bias:
            sharding = group.sharding
            split = sharding if sharding in _BIAS_FOLLOWS else _BIAS_OTHERWISE[sharding]
            self.vector(
                f"{group.name}.bias",
                group.module,
                group.out_features,
                split,
                units=group.shard_units,
                count=group.count,
            )
