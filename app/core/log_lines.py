"""The line or lines with which a release prints the cache."""

from __future__ import annotations

from app.core.gpu_spec import GpuSpec
from app.core.releases import Release
from app.core.result import Cache


def log_lines(release: Release, gpu: GpuSpec, cache: Cache) -> tuple[str, ...]:
    """Write what vLLM prints at start, word for word.

    Source: vllm/v1/core/kv_cache_utils.py; the formats are rows of data/vllm.
    """
    return tuple(
        line.format(
            platform=gpu.platform,
            tokens=cache.kv_cache_size_tokens,
            max_model_len=cache.max_model_len,
            max_concurrency=cache.max_concurrency,
        )
        for line in release.log_formats
    )
