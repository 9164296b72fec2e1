"""A model and its checkpoint from a config alone: pasted, or found on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from app.catalog.hf_config import read_config
from app.catalog.hf_quantization import read_quantization
from app.core.checkpoint import Checkpoint, Quantization
from app.core.model_spec import ModelSpec
from app.core.weights import checkpoint_bytes

OPTIONAL_PARTS = ("mtp", "mtp_shared", "vision", "audio")


@dataclass(frozen=True, slots=True, eq=False)
class ConfigModel:
    """What the core needs of a model that is not in the catalogue."""

    spec: ModelSpec
    checkpoint: Checkpoint


def model_from_config(
    config: Mapping[str, object],
    hf_quant_config: Mapping[str, object] | None = None,
    *,
    hf_id: str = "",
    weights_bytes: int | None = None,
    assume_unknown: bool = False,
) -> ConfigModel:
    """Read config and quantisation together. Raises ConfigError, and nothing else.

    `weights_bytes`, where known, also tells which optional parts (draft, towers) the files hold;
    else all that the config describes are taken to be there.
    """
    spec = read_config(config, assume_unknown=assume_unknown)
    quantization, kv_cache_scheme = read_quantization(
        config, hf_quant_config, assume_unknown=assume_unknown
    )
    described = {group.part for group in spec.tensors} & set(OPTIONAL_PARTS)
    checkpoint = Checkpoint(
        hf_id=hf_id,
        precision=precision_of(quantization),
        quantization=quantization,
        kv_cache_scheme=kv_cache_scheme,
        weights_bytes=weights_bytes,
        confidence="unknown" if weights_bytes is None else "published-index",
        source="config.json",
        includes=frozenset(described),
    )
    if weights_bytes is not None:
        checkpoint = replace(checkpoint, includes=parts_by_size(spec, checkpoint, weights_bytes))
    return ConfigModel(spec, checkpoint)


def parts_by_size(spec: ModelSpec, checkpoint: Checkpoint, weights_bytes: int) -> frozenset[str]:
    """Pick the optional parts with which the shapes come closest to the size of the files."""
    described = [part for part in OPTIONAL_PARTS if part in checkpoint.includes]
    choices = [
        frozenset(chosen)
        for count in range(len(described), -1, -1)
        for chosen in combinations(described, count)
    ]
    return min(
        choices,
        key=lambda parts: abs(
            checkpoint_bytes(spec, replace(checkpoint, includes=parts)) - weights_bytes
        ),
    )


def precision_of(quantization: Quantization) -> str:
    """Name the precision of most weights as the catalogue does; `bf16` for plain ones."""
    schemes = dict(quantization.schemes)
    order = ("expert", "mlp", "attn", "ssm", "shared")
    scheme = next((schemes[module] for module in order if module in schemes), "")
    names = {
        "fp8_tensor": "fp8",
        "fp8_channel": "fp8-dynamic",
        "nvfp4": "nvfp4",
        "mxfp4": "mxfp4",
        "mxfp8": "mxfp8",
        "int8_channel": "int8-w8a8",
        "w8a16": "int8-w8a16",
    }
    families = {"fp8_block": "fp8-block", "awq": "awq-int4", "gptq": "gptq-int4"}
    families["w4a16"] = "int4-w4a16"
    if scheme in names:
        return names[scheme]
    family = next((name for key, name in families.items() if scheme.startswith(key)), "")
    return family or ("mixed" if scheme else "bf16")
