"""A server small enough to work out by hand: round coefficients, a four-layer model, one card."""

from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from app.catalog.releases import load_releases
from app.core.checkpoint import Checkpoint
from app.core.coefficients import Bounds, MemoryCoefficients, RunnerCoefficients, exactly
from app.core.engine import EngineArgs
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.model_spec import AttentionSpec, LayerSpec, LengthSpec, ModelSpec, TensorGroup
from app.core.releases import Release
from app.core.request import SizingRequest
from app.core.units import GIB
from app.main import ROOT

HIDDEN = 1024
VOCABULARY = 4096
LAYERS = 4
FAMILIES = ("dense", "moe", "hybrid", "mla", "sparse_mla")


def runner(**changes: object) -> RunnerCoefficients:
    """Return coefficients of a runner: 10 bytes a logit, graphs of 1 GiB for 51 sizes."""
    values: dict[str, Any] = {
        "sampler_bytes_per_logit": Bounds(8.0, 10.0, 12.0),
        "sampler_state_bytes_per_logit": 0.0,
        "graph_base_bytes": exactly(0.0),
        "graph_layer_bytes": exactly(0.0),
        "graph_bytes": MappingProxyType({family: exactly(GIB) for family in FAMILIES}),
    }
    values.update(changes)
    return RunnerCoefficients(**values)


def coefficients(**changes: object) -> MemoryCoefficients:
    """Return coefficients in which every term is easy to add."""
    values: dict[str, Any] = {
        "runners": MappingProxyType({"V1": runner(), "V2": runner()}),
        "cold_compile": exactly(0.0),
        "moe_workspace_kept": False,
        "sparse_workspace_rows": (5, 2),
        "non_torch_bytes": exactly(GIB),
        "non_torch_group_bytes": exactly(2 * GIB),
        "context_bytes": exactly(GIB),
        "context_group_bytes": exactly(2 * GIB),
        "integrated_bytes": exactly(3 * GIB),
        "weights": MappingProxyType({"": exactly(1.0)}),
        "encoder_bytes": MappingProxyType({"": exactly(GIB), "tower": exactly(4 * GIB)}),
        "driver_only_bytes": Bounds(GIB, 2 * GIB, 4 * GIB),
        "unexplained_bytes": exactly(0.0),
        "observed_releases": ("0.11.0", "0.31.0"),
    }
    values.update(changes)
    return MemoryCoefficients(**values)


@cache
def shipped(version: str) -> Release:
    """Return a release as the project ships it."""
    return load_releases(ROOT / "data" / "vllm").release_for(version)[0]


def release(version: str = "0.32.0", /, **changes: object) -> Release:
    """Return a release with the round coefficients; `changes` are coefficients."""
    return replace(shipped(version), memory=coefficients(**changes))


def dense(**changes: object) -> ModelSpec:
    """Return a model with full attention in four layers: 16 KiB of 16-bit cache a token."""
    attention = AttentionSpec("full_attention", num_kv_heads=8, head_size=128, head_size_v=128)
    values: dict[str, Any] = {
        "architecture": "LlamaForCausalLM",
        "model_type": "llama",
        "layers": (LayerSpec(attention),) * LAYERS,
        "tensors": (TensorGroup("mlp.down_proj", "mlp", 0, HIDDEN, 4096, quantizable=True),),
        "length": LengthSpec((("max_position_embeddings", 131072),)),
        "dtype": "bfloat16",
        "hidden_size": HIDDEN,
        "intermediate_size": 4096,
        "vocab_size": VOCABULARY,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
    }
    values.update(changes)
    return ModelSpec(**values)


def card(total_gib: float | None = 100.0, driver_mib: int | None = 102 * 1024) -> GpuSpec:
    """Return a card of which vLLM sees 100 GiB and the driver 102."""
    return GpuSpec(
        slug="card",
        name="Card",
        architecture="Test",
        compute_capability=(9, 0),
        driver_memory_mib=driver_mib,
        total_memory_bytes=None if total_gib is None else int(total_gib * GIB),
    )


def request(**changes: object) -> SizingRequest:
    """Return a request for 1,000 tokens; engine arguments by name, the rest by field."""
    fields = {"model", "checkpoint", "gpu", "release", "layout", "measured"}
    args: dict[str, Any] = {"max_model_len": 1000}
    args.update({name: changes.pop(name) for name in list(changes) if name in EngineArgs.__slots__})
    values: dict[str, Any] = {
        "model": dense(),
        "checkpoint": Checkpoint("maker/model", "bf16"),
        "gpu": card(),
        "release": release(),
        "layout": Layout(),
        "engine_args": EngineArgs(**args),
    }
    unknown = changes.keys() - fields - {"gpu_total_memory_bytes", "other_processes_bytes"}
    if unknown:
        raise TypeError(f"no such input: {unknown}")
    values.update(changes)
    return SizingRequest(**values)
