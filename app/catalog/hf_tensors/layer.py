"""Builder for the tensor groups of one layer (or of the places before and after the layers)."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        quantizable: bool = True,
        loaded_dtype: str | None = None,
    ) -> None:
        """Add `count` linear layers of `shape` (out_features, in_features), with bias if asked."""
        out, into = shape
        if not (out and into and count):
            return
        self.groups.append(
            TensorGroup(
                self.prefix + name,
                module,
                self.layer,
                out,
                into,
                count,
                sharding,
                units,
                quantizable,
                self.part,
                None,
                loaded_dtype,
            )
        )
        if bias:
            split = sharding if sharding in _BIAS_FOLLOWS else _BIAS_OTHERWISE[sharding]
            self.vector(f"{name}.bias", module, out, split, units=units, count=count)

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
        if size:
            self.groups.append(
                TensorGroup(
                    self.prefix + name,
                    module,
                    self.layer,
                    size,
                    1,
                    count,
                    sharding,
                    units,
                    part=self.part,
                    dtype=dtype,
                )
            )

    def norms(self, size: int, *names: str) -> None:
        """Add norm weights of one size."""
        for name in names:
            self.vector(name, "norm", size)
