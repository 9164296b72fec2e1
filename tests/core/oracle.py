"""Answers of vLLM's own code, as cases: what was asked, and what it worked out.

The files `*_cases.json` in `tests/golden` hold the answers, `*_models.json` what the arithmetic
needs of each config. See tests/golden/README.md.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.catalog.gpus import load_gpus
from app.catalog.hf_config import read_config
from app.catalog.hf_fields import ConfigError
from app.catalog.hf_layers import cache_layers, length_spec
from app.catalog.hf_quantization import read_quantization
from app.catalog.releases import Releases, load_releases
from app.core.checkpoint import Checkpoint
from app.core.engine import EngineArgs, SpeculativeConfig
from app.core.engine_defaults import resolve_engine_args
from app.core.gpu_spec import GpuSpec
from app.core.kv_cache import cache_for
from app.core.layout import Layout
from app.core.model_spec import MlaSpec, ModelSpec, PackedSpec
from app.core.reasons import Refusal
from app.core.request import SizingRequest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


@dataclass(frozen=True, slots=True, eq=False)
class OracleCase:
    """One start and what vLLM's code said about it.

    `available_bytes` is the memory for the cache on each card. `expected` holds the figures, or
    `reason` and `vllm_error`. `left_out` says why the answer is not ours to equal,
    `weights_differ` the same of the weights alone; empty where it is.
    """

    name: str
    family: str
    request: SizingRequest
    available_bytes: int
    expected: dict[str, Any]
    left_out: str = ""
    weights_differ: str = ""


@cache
def releases() -> Releases:
    """Return the shipped release rows."""
    return load_releases(ROOT / "data" / "vllm")


@cache
def gpus() -> dict[str, GpuSpec]:
    """Return the shipped cards by slug."""
    return {slug: gpu.spec for slug, gpu in load_gpus(ROOT / "data" / "gpus", []).items()}


@cache
def models() -> dict[str, tuple[ModelSpec, Checkpoint]]:
    """Return model and checkpoint of every config."""
    facts: dict[str, Any] = {}
    for file in ("blind_models.json", "generated_models.json", "oracle_models.json"):
        facts |= json.loads((GOLDEN / file).read_text(encoding="utf-8"))
    return {name: _model(name, own) for name, own in facts.items()}


def _model(name: str, facts: dict[str, Any]) -> tuple[ModelSpec, Checkpoint]:
    config, beside = facts["config"], facts.get("hf_quant_config")
    try:
        quantization, scheme = read_quantization(config, beside, assume_unknown=True)
        model = read_config(config, assume_unknown=True)
    except ConfigError:  # no decoder whose tensors could be counted
        return _cache_only(config), Checkpoint(name, "bf16")
    return model, Checkpoint(
        name, quantization.method or "bf16", quantization, kv_cache_scheme=scheme
    )


def _cache_only(config: dict[str, Any]) -> ModelSpec:
    """Read only what the cache needs: models without attention, encoder-decoder models."""
    heads = config.get("decoder_attention_heads", 0)
    return ModelSpec(
        architecture=config["architectures"][0],
        model_type=config["model_type"],
        layers=cache_layers(config),
        tensors=(),
        length=length_spec(config),
        dtype=config["torch_dtype"],
        hidden_size=0,
        intermediate_size=0,
        vocab_size=config.get("vocab_size", 0),
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=0,
        tie_word_embeddings=False,
    )


@cache
def cases(file: str = "oracle_cases.json") -> tuple[OracleCase, ...]:
    """Return every case of a file."""
    rows = json.loads((GOLDEN / file).read_text(encoding="utf-8"))
    return tuple(_case(row) for row in rows)


def _case(row: dict[str, Any]) -> OracleCase:
    model, checkpoint = models()[row["model"]]
    release, _ = releases().release_for(row["release"])
    args = dict(row.get("engine_args", {}))
    if "speculative_config" in args:
        args["speculative_config"] = SpeculativeConfig(**args["speculative_config"])
    request = SizingRequest(
        model=model,
        checkpoint=checkpoint,
        gpu=gpus()[row["gpu"]],
        release=release,
        layout=Layout(**row.get("layout", {})),
        engine_args=EngineArgs(**args),
    )
    return OracleCase(
        row["id"],
        family_of(model),
        request,
        row["available_bytes"],
        row["expected"],
        row.get("left_out", ""),
        row.get("weights_differ", ""),
    )


def family_of(model: ModelSpec) -> str:
    """Name the kinds of caches that a model's layers keep."""
    kinds = set()
    for layer in model.layers:
        for spec in (layer.cache, layer.beside):
            if isinstance(spec, MlaSpec):
                kinds.add("sparse MLA" if spec.sparse else "MLA")
            elif isinstance(spec, PackedSpec):
                kinds.add("packed")
            elif spec is not None:
                kinds.add(spec.kind)
    return " + ".join(sorted(kinds)).replace("_", " ")


def answer(case: OracleCase) -> dict[str, Any]:
    """Work out what vLLM's code worked out, under the same names."""
    try:
        resolved = resolve_engine_args(case.request)
        stages = case.request.layout.pipeline_parallel_size
        found = cache_for(case.request, resolved, [case.available_bytes] * stages)
    except Refusal as refusal:
        return {"reason": refusal.reason.code, "vllm_error": refusal.reason.vllm_error.strip()}
    groups = Counter((g.num_layers, g.blocks_per_request, g.block_size) for g in found.groups)
    return {
        "num_gpu_blocks": found.num_gpu_blocks,
        "block_size": found.block_size,
        "bytes_per_block": found.bytes_per_block,
        "tokens": found.kv_cache_size_tokens,
        "concurrency": found.max_concurrency,
        "max_model_len": found.max_model_len,
        "max_num_batched_tokens": resolved.max_num_batched_tokens,
        "max_num_seqs": resolved.max_num_seqs,
        "max_in_flight_tokens": resolved.max_in_flight_tokens,
        "mamba_cache_mode": resolved.mamba_cache_mode,
        "prefix_caching": resolved.enable_prefix_caching,
        "groups": [[count, *group] for group, count in sorted(groups.items())],
    }


def differences(case: OracleCase) -> list[str]:
    """Write down every figure that is not exactly what vLLM's code worked out."""
    ours = answer(case)
    return [
        f"{key}: {ours.get(key)!r}, vLLM {value!r}"
        for key, value in case.expected.items()
        if key != "weights_bytes_per_rank" and ours.get(key) != value
    ]
