"""Metrics pages in the names of V0 and V1, with numbers of our own."""

from collections.abc import Mapping

_BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
_INFO = (
    'block_size="16",cache_dtype="fp8_e4m3",enable_prefix_caching="True",'
    'gpu_memory_utilization="0.92",kv_cache_memory_bytes="None",kv_cache_size_tokens="215040",'
    'kv_cache_max_concurrency="6.5625",num_gpu_blocks="13440",num_gpu_blocks_override="None"'
)


def histogram(name: str, labels: str, lengths: Mapping[int, int]) -> list[str]:
    """A histogram of requests by length, in vLLM's 1-2-5 buckets."""
    lines = []
    for bound in (*_BOUNDS, None):
        reached = sum(n for length, n in lengths.items() if bound is None or length <= bound)
        le = "+Inf" if bound is None else f"{bound}.0"
        lines.append(f'{name}_bucket{{{labels},le="{le}"}} {reached}.0')
    lines.append(f"{name}_count{{{labels}}} {sum(lengths.values())}.0")
    total = sum(length * n for length, n in lengths.items())
    lines.append(f"{name}_sum{{{labels}}} {total}.0")
    return lines


def page(
    *,
    engine: str = "0",
    usage: float = 0.41,
    running: int = 12,
    waiting: int = 0,
    preemptions: int = 17,
    prompts: Mapping[int, int] | None = None,
    answers: Mapping[int, int] | None = None,
    created: float = 1.5e9,
) -> str:
    """A page of one V1 engine as release 0.24.0 and later expose it."""
    labels = f'engine="{engine}",model_name="our-org/our-8B"'
    lines = [
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{{{labels}}} {running}.0",
        f"vllm:num_requests_waiting{{{labels}}} {waiting}.0",
        f'vllm:num_requests_waiting_by_reason{{{labels},reason="capacity"}} {waiting}.0',
        f'vllm:num_requests_waiting_by_reason{{{labels},reason="deferred"}} 0.0',
        f"vllm:kv_cache_usage_perc{{{labels}}} {usage}",
        f"vllm:num_preemptions_total{{{labels}}} {preemptions}.0",
        f"vllm:num_preemptions_created{{{labels}}} {created}",
        f"vllm:prefix_cache_queries_total{{{labels}}} 1000.0",
        f"vllm:prefix_cache_hits_total{{{labels}}} 250.0",
        *histogram("vllm:request_prompt_tokens", labels, prompts or {900: 90, 4_000: 10}),
        *histogram("vllm:request_generation_tokens", labels, answers or {150: 100}),
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} 100.0',
        f'vllm:time_to_first_token_seconds_bucket{{{labels},le="0.1"}} 3.0',
        f'vllm:cache_config_info{{engine="{engine}",{_INFO}}} 1.0',
        "process_resident_memory_bytes 1.0e9",
    ]
    return "\n".join(lines) + "\n"


V0_PAGE = """\
# HELP vllm:gpu_cache_usage_perc GPU KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:num_requests_running{model_name="our-org/our-8B"} 40.0
vllm:num_requests_swapped{model_name="our-org/our-8B"} 2.0
vllm:num_requests_waiting{model_name="our-org/our-8B"} 5.0
vllm:gpu_cache_usage_perc{model_name="our-org/our-8B"} 0.87
vllm:cpu_cache_usage_perc{model_name="our-org/our-8B"} 0.1
vllm:num_preemptions_total{model_name="our-org/our-8B"} 3.0
vllm:gpu_prefix_cache_hit_rate{model_name="our-org/our-8B"} -1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",gpu_memory_utilization="0.9",\
num_cpu_blocks="2048",num_gpu_blocks="1000",num_gpu_blocks_override="None"} 1.0
"""
