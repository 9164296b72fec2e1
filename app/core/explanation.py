"""How each figure of an answer came about, as data; built only when asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from app.core.budget import free_at_start
from app.core.coefficients import exactly
from app.core.engine import ResolvedEngineArgs
from app.core.kv_cache import cache_shape
from app.core.planning import (
    PLANNING_RESERVE_BYTES,
    PLANNING_UTILIZATION,
    copy_weights_bytes,
    planning_memory_bytes,
)
from app.core.result import Cache, Planning, SizingResult
from app.core.steps import Step

INSIDE_BUDGET = frozenset(
    {"weights", "peak_activation", "persistent_buffers", "non_torch", "cudagraph_estimate"}
)
PLANNING_RULE = "the vendor's planning rule"
SHAPES = "config.json, quantization_config"
KV_CACHE = "vllm/v1/core/kv_cache_utils.py"
WORKER = "vllm/v1/worker/gpu_worker.py"
REQUESTED = "vllm/v1/worker/utils.py request_memory"


def explain(result: SizingResult) -> tuple[Step, ...]:
    """Give the steps from weights to verdict, in the order of the page.

    Empty where vLLM refuses the request before it looks at memory.
    """
    resolved = result.resolved
    if resolved is None:
        return ()
    steps = [*_weights(result, resolved), *_cache_costs(result, resolved)]
    if result.planning is not None:
        steps += _planning(result, resolved, result.planning)
    steps += [*_free_memory(result, resolved), *_memory(result, resolved)]
    if result.cache is not None:
        steps += _cache(result, result.cache)
        steps.append(_verdict(result, result.cache))
    return tuple(steps)


def _weights(result: SizingResult, resolved: ResolvedEngineArgs) -> Iterator[Step]:
    request = result.request
    yield Step(
        "checkpoint_bytes",
        (("checkpoint", request.checkpoint.hf_id), ("precision", request.checkpoint.precision)),
        result.checkpoint_bytes or 0,
        "bytes",
        SHAPES,
    )
    yield Step(
        "weights_bytes_per_rank",
        (
            ("tensor_parallel_size", request.layout.tensor_parallel_size),
            ("pipeline_parallel_size", request.layout.pipeline_parallel_size),
            ("cpu_offload_gb", resolved.cpu_offload_gb),
        ),
        result.weights_bytes_per_rank or 0,
        "bytes",
        "vllm/model_executor/model_loader: Model loading took",
    )


def _cache_costs(result: SizingResult, resolved: ResolvedEngineArgs) -> Iterator[Step]:
    """What a block and a token cost, before any memory is known."""
    request = result.request
    shape = cache_shape(request, resolved)
    width = request.layout.tensor_parallel_size
    per_block = max(shape.bytes_per_block_by_stage)
    yield Step(
        "bytes_per_block",
        (
            ("num_hidden_layers", request.model.num_hidden_layers),
            ("block_size", shape.block_size),
            ("kv_cache_dtype", resolved.stored_cache_dtype),
            ("tensor_parallel_size", width),
        ),
        per_block,
        "bytes",
        "vllm/v1/kv_cache_interface.py page_size_bytes",
    )
    over_all_cards = width * sum(shape.bytes_per_block_by_stage)
    yield Step(
        "kv_bytes_per_token",
        (
            ("bytes_per_block", over_all_cards),
            ("blocks_per_request", shape.blocks_per_request),
            ("max_model_len", resolved.max_model_len),
        ),
        over_all_cards * shape.blocks_per_request / resolved.max_model_len,
        "bytes",
        KV_CACHE,
    )


def _planning(result: SizingResult, resolved: ResolvedEngineArgs, plan: Planning) -> Iterator[Step]:
    request, copies = result.request, result.request.layout.engines
    shape = cache_shape(request, resolved)
    yield Step(
        "planning_pool",
        (
            ("cards_per_copy", request.layout.cards_per_engine),
            (
                "gpu_memory_utilization",
                request.engine_args.gpu_memory_utilization or PLANNING_UTILIZATION,
            ),
            ("card_memory_bytes", planning_memory_bytes(request) or 0),
            ("reserve_bytes", PLANNING_RESERVE_BYTES),
            ("weights_bytes", copy_weights_bytes(request, resolved)),
        ),
        plan.pool_bytes // copies,
        "bytes",
        PLANNING_RULE,
    )
    yield Step(
        "planning_requests",
        (
            ("pool_bytes", plan.pool_bytes // copies),
            (
                "bytes_per_block",
                request.layout.tensor_parallel_size * sum(shape.bytes_per_block_by_stage),
            ),
            ("blocks_per_request", shape.blocks_per_request),
            ("max_concurrency", plan.max_concurrency / copies),
            ("copies", copies),
        ),
        plan.requests,
        "requests",
        PLANNING_RULE,
    )


def _free_memory(result: SizingResult, resolved: ResolvedEngineArgs) -> Iterator[Step]:
    """What the budget finds free at start; only where other processes share the card."""
    request, total = result.request, result.total_memory_bytes
    coefficients, others = request.release.memory, request.other_processes_bytes
    if not others or total is None or coefficients is None:
        return
    alone = replace(request, other_processes_bytes=0)
    yield Step(
        "free_memory",
        (
            ("total_memory_bytes", total),
            (
                "context_bytes",
                total - int(free_at_start(alone, coefficients, exactly(total)).likely),
            ),
            ("other_processes_bytes", others),
            ("requested_bytes", math.ceil(total * resolved.gpu_memory_utilization)),
        ),
        int(free_at_start(request, coefficients, exactly(total)).likely),
        "bytes",
        REQUESTED,
    )


def _memory(result: SizingResult, resolved: ResolvedEngineArgs) -> Iterator[Step]:
    """The budget and what leaves it; nothing where the memory was given."""
    available, total = result.available_kv_cache_memory, result.total_memory_bytes
    if available is None or total is None or result.request.given_cache_bytes is not None:
        return
    requested = math.ceil(total * resolved.gpu_memory_utilization)
    yield Step(
        "requested_memory",
        (
            ("total_memory_bytes", total),
            ("gpu_memory_utilization", resolved.gpu_memory_utilization),
        ),
        requested,
        "bytes",
        REQUESTED,
    )
    terms = {term.code: term for term in result.memory if term.code in INSIDE_BUDGET}
    for code, term in terms.items():
        yield Step(
            code,
            (
                *_inputs_of(code, result, resolved),
                ("low_bytes", term.low),
                ("high_bytes", term.high),
            ),
            term.likely,
            "bytes",
            term.source,
        )
    yield Step(
        "available_kv_cache_memory",
        (
            ("requested_bytes", requested),
            ("low_bytes", int(available.low)),
            ("high_bytes", int(available.high)),
        ),
        int(available.likely),
        "bytes",
        WORKER,
    )


def _inputs_of(
    code: str, result: SizingResult, resolved: ResolvedEngineArgs
) -> tuple[tuple[str, int | str], ...]:
    model = result.request.model
    sizes: dict[str, tuple[tuple[str, int | str], ...]] = {
        "peak_activation": (
            ("max_num_batched_tokens", resolved.max_num_batched_tokens),
            ("max_num_seqs", resolved.max_num_seqs),
            ("vocab_size", model.vocab_size),
            ("hidden_size", model.hidden_size),
            ("model_runner", resolved.model_runner),
        ),
        "persistent_buffers": (
            ("max_num_seqs", resolved.max_num_seqs),
            ("vocab_size", model.vocab_size),
            ("num_experts_per_tok", model.num_experts_per_tok),
        ),
        "non_torch": (("cards_per_copy", result.request.layout.cards_per_engine),),
        "cudagraph_estimate": (("cudagraph_capture_sizes", resolved.cudagraph_capture_sizes),),
    }
    return sizes.get(code, ())


def _cache(result: SizingResult, cache: Cache) -> Iterator[Step]:
    available = result.available_kv_cache_memory
    yield Step(
        "num_gpu_blocks",
        (
            ("available_bytes", 0 if available is None else int(available.likely)),
            ("bytes_per_block", cache.bytes_per_block),
        ),
        cache.num_gpu_blocks,
        "blocks",
        KV_CACHE,
    )
    yield Step(
        "blocks_per_request",
        (("max_model_len", cache.max_model_len), ("block_size", cache.block_size)),
        cache.blocks_per_request,
        "blocks",
        KV_CACHE,
    )
    yield Step(
        "max_concurrency",
        (
            ("num_gpu_blocks", cache.num_gpu_blocks),
            ("blocks_per_request", cache.blocks_per_request),
        ),
        cache.max_concurrency,
        "ratio",
        KV_CACHE,
    )
    yield Step(
        "kv_cache_size_tokens",
        (("max_concurrency", cache.max_concurrency), ("max_model_len", cache.max_model_len)),
        cache.kv_cache_size_tokens,
        "tokens",
        KV_CACHE,
    )


def _verdict(result: SizingResult, cache: Cache) -> Step:
    expected = result.concurrency_range
    return Step(
        "verdict",
        (
            ("planning_requests", 0 if result.planning is None else result.planning.requests),
            ("low_concurrency", cache.max_concurrency if expected is None else expected.low),
            ("engines", result.request.layout.engines),
        ),
        result.verdict_requests,
        "requests",
        PLANNING_RULE,
    )
