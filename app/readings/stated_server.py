"""Which server a log is about, under the names of a sizing's inputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.catalog.gpus import CatalogueGpu, gpus_logged_as
from app.catalog.model_search import FoundModel, find_model, nearest_models
from app.catalog.releases import UnknownReleaseError
from app.core.units import GIB
from app.readings.observation import ArgValue, Observation

# Set by a person, they count as they are; vLLM's resolved values of them are its defaults.
_SET_BY_A_PERSON: Final = (
    "block_size", "kv_cache_memory_bytes", "max_num_batched_tokens", "max_num_seqs",
    "enable_prefix_caching", "async_scheduling", "disable_hybrid_kv_cache_manager",
    "mamba_cache_mode", "mamba_ssm_cache_dtype", "speculative_config", "dtype",
    "enable_chunked_prefill", "cpu_offload_gb", "max_cudagraph_capture_size",
    "limit_mm_per_prompt", "language_model_only", "enable_lora", "max_loras", "max_lora_rank",
    "hf_overrides",
)  # fmt: skip
# Whoever set them, they are what the server runs with.
_IN_EFFECT: Final = ("kv_cache_dtype", "enforce_eager")
_LAYOUT: Final = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
    "decode_context_parallel_size", "enable_expert_parallel",
)  # fmt: skip
# How far a printed total may be from the catalogue's before it is another card (share of it), and
# before it is worth its own figure: totals differ by the driver by a tenth of a GiB.
_SAME_CARD: Final = 0.012
_SAME_TOTAL_BYTES: Final = round(0.02 * GIB)
_NEAREST: Final = 3
_ONLINE_FP8: Final = "fp8-dynamic"
_UNKNOWN_RELEASE: Final = "nightly"


@dataclass(frozen=True, slots=True)
class StatedServer:
    """What a log says of its server.

    inputs          names and values of a sizing's inputs; JSON objects as text
    gpu_candidates  slugs of the cards that the log may mean; one where it is certain
    nearest_models  slugs like the logged name, where the catalogue has no such model
    gaps            what the log does not tell, or the catalogue does not know: `model`,
                    `model_unknown`, `gpu`, `gpu_ambiguous`, `vllm_version`, `max_num_seqs`
    """

    inputs: Mapping[str, str | int | float | bool]
    gpu_candidates: tuple[str, ...]
    nearest_models: tuple[str, ...]
    gaps: tuple[str, ...]


def stated_server(start: Observation, catalogue: Catalogue) -> StatedServer:
    """Read the inputs of a sizing from one start. Never raises."""
    gaps: list[str] = []
    inputs: dict[str, str | int | float | bool] = {}
    nearest = _read_model(start, catalogue, inputs, gaps)
    candidates = _read_card(start, catalogue, inputs, gaps)
    inputs["vllm_version"] = _release(start, catalogue, gaps)
    _read_arguments(start, inputs)
    if len(candidates) != 1 and "max_num_seqs" not in inputs:
        gaps.append("max_num_seqs")
    return StatedServer(inputs, candidates, nearest, tuple(gaps))


def _read_model(
    start: Observation, catalogue: Catalogue, inputs: dict[str, str | int | float | bool],
    gaps: list[str],
) -> tuple[str, ...]:  # fmt: skip
    names = [name for name in (start.model, start.served_model_name) if name]
    found = next((each for name in names if (each := _find(catalogue, name))), None)
    if found is None:
        gaps.append("model_unknown" if names else "model")
        near = nearest_models(catalogue.models, names[0], _NEAREST) if names else ()
        return tuple(each.slug for each in near)
    inputs["model"] = found.model.slug
    if found.checkpoint is not None:
        inputs["checkpoint"] = found.checkpoint.hf_id
    else:
        # The name of the model is that of its own repository, whatever else there is.
        own = [each for each in found.model.checkpoints if each.hf_id == found.model.hf_id]
        if own:
            inputs["checkpoint"] = own[0].hf_id
    if start.engine_args.get("quantization") == "fp8" and _is_16_bit(found):
        inputs["checkpoint"] = _ONLINE_FP8
    return ()


def _find(catalogue: Catalogue, name: str) -> FoundModel | None:
    """Find a model by its id, or by the last part of a path to a copy of it."""
    found = find_model(catalogue.models, name)
    tail = name.rstrip("/").rpartition("/")[2].casefold()
    if found is not None or not tail:
        return found
    for model in catalogue.models.values():
        for hf_id in (model.hf_id, *(each.hf_id for each in model.checkpoints)):
            if hf_id.rpartition("/")[2].casefold() == tail:
                return find_model(catalogue.models, hf_id)
    return None


def _is_16_bit(found: FoundModel) -> bool:
    chosen = found.checkpoint or found.model.select()[0]
    return chosen.checkpoint.quantization.method is None


def _read_card(
    start: Observation, catalogue: Catalogue, inputs: dict[str, str | int | float | bool],
    gaps: list[str],
) -> tuple[str, ...]:  # fmt: skip
    total_gib = start.observed.total_memory_gib
    total = round(total_gib * GIB) if total_gib else None
    every = {**catalogue.gpus, **catalogue.slices}
    named = [card for name in start.gpu_names for card in gpus_logged_as(every, name)]
    cards = tuple({card.slug: card for card in named or catalogue.gpus.values()}.values())
    if total is not None:
        cards = tuple(card for card in cards if _may_have(card, total)) or (cards if named else ())
    elif not named:
        cards = ()
    slugs = tuple(card.slug for card in cards)
    if len(cards) == 1:
        inputs["gpu"] = slugs[0]
    else:
        gaps.append("gpu_ambiguous" if cards else "gpu")
    known = cards[0].spec.total_memory_bytes if len(cards) == 1 else None
    if total is not None and (known is None or abs(total - known) > _SAME_TOTAL_BYTES):
        inputs["gpu_total_memory_bytes"] = total
    return slugs


def _may_have(card: CatalogueGpu, total: int) -> bool:
    known = card.spec.total_memory_bytes
    if known is not None:
        return abs(known - total) <= _SAME_CARD * known
    driver = card.spec.driver_memory_bytes
    # The driver's figure is larger than what vLLM sees, by up to a few percent.
    return driver is not None and (1 - 4 * _SAME_CARD) * driver <= total <= driver


def _release(start: Observation, catalogue: Catalogue, gaps: list[str]) -> str:
    """Return the release printed, else the newest that the wording allows."""
    if start.vllm_version is not None:
        try:
            catalogue.releases.release_for(start.vllm_version)
        except UnknownReleaseError:
            pass
        else:
            return start.vllm_version
    gaps.append("vllm_version")
    return start.vllm_version_at_most or catalogue.releases.newest.version or _UNKNOWN_RELEASE


def _read_arguments(start: Observation, inputs: dict[str, str | int | float | bool]) -> None:
    args, observed = start.engine_args, start.observed
    inputs.update(_plain(args, (name for name in _SET_BY_A_PERSON if name in start.explicit_args)))
    inputs.update(_plain(args, _IN_EFFECT))
    for name in _LAYOUT:
        value = getattr(start, name)
        if value:
            inputs[name] = value
    length = observed.max_concurrency_len or observed.max_model_len
    if length is None and start.failure is not None:
        failed = start.failure.numbers.get("max_model_len")
        length = failed if isinstance(failed, int) else None
    stated = args.get("max_model_len")
    if length is None and isinstance(stated, int) and stated > 0:
        length = stated
    if length:
        inputs["max_model_len"] = length
    utilization = args.get("gpu_memory_utilization", observed.gpu_memory_utilization)
    if isinstance(utilization, float):
        inputs["gpu_memory_utilization"] = utilization
    if observed.num_gpu_blocks_override:
        inputs["num_gpu_blocks_override"] = observed.num_gpu_blocks_override
    if "gpu" not in inputs and observed.max_num_batched_tokens:
        # Without the card the default is unknown, but vLLM announced it.
        inputs.setdefault("max_num_batched_tokens", observed.max_num_batched_tokens)


def _plain(
    args: Mapping[str, ArgValue], names: Iterable[str]
) -> dict[str, str | int | float | bool]:
    """Keep the arguments that were given, objects as JSON text."""
    plain: dict[str, str | int | float | bool] = {}
    for name in names:
        value = args.get(name)
        if isinstance(value, dict | list):
            plain[name] = json.dumps(value)
        elif value is not None:
            plain[name] = value
    return plain
