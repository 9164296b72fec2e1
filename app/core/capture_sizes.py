"""How many batch sizes vLLM captures CUDA graphs for.

Source: vllm/config/vllm.py `_set_cudagraph_sizes`, vllm/model_executor/models/config.py
`GptOssForCausalLMConfig`.
"""

from __future__ import annotations

from functools import lru_cache

from app.core.attention_layer import BLACKWELL
from app.core.request import SizingRequest

_GPT_OSS_LARGEST = 1024
_FINE, _COARSE_FROM = 8, 256
_SMALL = (1, 2, 4)


def capture_sizes(request: SizingRequest, max_num_batched_tokens: int, max_num_seqs: int) -> int:
    """Count the captured batch sizes; 0 with `--enforce-eager`."""
    args, release = request.engine_args, request.release
    if args.enforce_eager:
        return 0
    draft = args.speculative_config if release.capture_counts_drafts else None
    query_tokens = 1 + (draft.num_speculative_tokens if draft else 0)
    step = release.capture_step_above_256
    largest = args.max_cudagraph_capture_size
    if largest is None and request.model.model_type == "gpt_oss":
        largest = _GPT_OSS_LARGEST
    if largest is not None:
        return _count(min(largest, max_num_batched_tokens), 1, 0, step)
    on_blackwell = (request.gpu.compute_capability or (0, 0))[0] == BLACKWELL
    limit = release.max_cudagraph_capture_size
    if on_blackwell:
        limit = release.max_cudagraph_capture_size_sm100
    largest = min(2 * max_num_seqs * query_tokens, limit, max_num_batched_tokens)
    return _count(largest, query_tokens, max_num_seqs, step)


@lru_cache(maxsize=4096)
def _count(largest: int, query_tokens: int, max_num_seqs: int, step: int) -> int:
    """Count the sizes up to `largest`: the usual grid, and whole batches of decoding requests."""
    sizes = _grid(largest, step)
    if query_tokens > 1:
        sizes |= {
            size * query_tokens
            for size in _grid(max_num_seqs, step) | {max_num_seqs}
            if size * query_tokens <= largest
        }
    elif 0 < max_num_seqs <= largest:
        sizes.add(max_num_seqs)
    return len(sizes)


def _grid(largest: int, step: int) -> set[int]:
    fine = range(_FINE, min(largest + 1, _COARSE_FROM), _FINE)
    coarse = range(_COARSE_FROM, largest + 1, step)
    return {size for size in _SMALL if size <= largest} | {*fine, *coarse}
