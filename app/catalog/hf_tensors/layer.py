"""Builder for the tensor groups of one layer (or of the places before and after the layers)."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.model_spec import Sharding, TensorGroup


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
        quantizable: bool = True,
        dtype: str | None = None,
    ) -> None:
        """Add a linear layer of `shape` (out_features, in_features), with its bias if it has one."""
        self._add(name, module, shape, sharding, units, count, quantizable, dtype)
        if bias:
            split: Sharding = sharding if sharding in _BIAS_FOLLOWS else _BIAS_OTHERWISE[sharding]
            self._add(name + ".bias", module, (shape[0], 1), split, units, count, False, dtype)

    def vector(
        self,
        name: str,
        module: str,
        size: int,
        sharding: Sharding = "replicated",
        *,
        units: int = 0,
        dtype: str | None = None,
    ) -> None:
        """Add a vector: a norm, a bias, a per-head parameter."""
        self._add(name, module, (size, 1), sharding, units, 1, False, dtype)

    def norms(self, size: int, *names: str) -> None:
        """Add norm weights of one size."""
        for name in names:
            self.vector(name, "norm", size)

    def _add(
        self,
        name: str,
        module: str,
        shape: tuple[int, int],
        sharding: Sharding,
        units: int,
        count: int,
        quantizable: bool,
        dtype: str | None,
    ) -> None:
        if shape[0] and shape[1] and count:
            self.groups.append(
                TensorGroup(
                    self.prefix + name,
                    module,
                    self.layer,
                    shape[0],
                    shape[1],
                    count,
                    sharding,
                    units,
                    quantizable,
                    self.part,
                    dtype,
                )
            )


_BIAS_FOLLOWS = frozenset({"column", "kv_heads", "replicated", "expert_column"})
_BIAS_OTHERWISE: dict[str, Sharding] = {"row": "replicated", "expert_row": "expert"}
