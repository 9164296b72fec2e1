"""Logs of servers that are not what they say: one is started, another one is written down."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from app.core.request import Measured, SizingRequest
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.readings.start_log import read_start_log
from app.web.read_start import ReadStart, read_start
from app.wizard.answers import parse_answers
from app.wizard.sizing_request import to_request
from tests.shipped import catalogue

LLAMA: Final = {
    "model": "llama-3.1-8b",
    "gpu": "l40s",
    "vllm_version": "0.25.1",
    "max_model_len": "16384",
}
_NO_FLAGS: Final = frozenset({"model", "gpu", "vllm_version", "checkpoint"})


@dataclass(frozen=True)
class Printed:
    """Figures of a start in GiB."""

    total: float
    free: float
    weights: float
    peak_activation: float
    non_torch: float
    cudagraph_estimate: float
    cudagraph: float
    available: float


def sized(inputs: Mapping[str, str]) -> SizingResult:
    """Size a server that is given by the names of the wizard."""
    request = to_request(parse_answers(inputs.items()).answers, catalogue()).request
    assert request is not None, inputs
    return size(replace(request, measured=Measured()))


def likely(result: SizingResult) -> Printed:
    """Return what the estimate expects the server to print."""
    terms = {term.code: term.likely / GIB for term in result.memory}
    assert result.total_memory_bytes is not None
    assert result.available_kv_cache_memory is not None
    total = result.total_memory_bytes / GIB
    return Printed(
        total=total,
        free=total - 0.5,
        weights=terms["weights"],
        peak_activation=terms["peak_activation"] + terms["persistent_buffers"],
        non_torch=terms["non_torch"],
        cudagraph_estimate=terms["cudagraph_estimate"],
        cudagraph=terms["cudagraph_estimate"],
        available=result.available_kv_cache_memory.likely / GIB,
    )


def text_of(
    truth: Mapping[str, str], said: Mapping[str, str] | None = None, /, **figures: float
) -> str:
    """Write the log of a server `truth` under the arguments of `said`; `figures` are replaced.

    Tokens and concurrency are those of the true server with the memory that is printed.
    """
    profiled = {key: text for key, text in truth.items() if key != "num_gpu_blocks_override"}
    result, said = sized(profiled), said or truth
    assert result.resolved is not None
    utilization = result.resolved.gpu_memory_utilization
    printed = replace(likely(result), **figures)
    request = sized(truth).request
    return "\n".join([*_head(said), *_memory(utilization, printed), *_cache(request, printed)])


def _head(said: Mapping[str, str]) -> list[str]:
    model = catalogue().models[said["model"]]
    name = said.get("checkpoint", model.hf_id)
    flags = {key: text for key, text in said.items() if key not in _NO_FLAGS}
    shown = "".join(f", '{key}': {_literal(text)}" for key, text in flags.items())
    version = said["vllm_version"]
    return [
        f"GPU 0: {catalogue().gpus[said['gpu']].spec.name}",
        _line("api_utils.py:339", f"vLLM API server version {version}"),
        _line("api_utils.py:273", f"non-default args: {{'model': '{name}'{shown}}}"),
        _line(
            "core.py:109",
            f"Initializing a V1 LLM engine (v{version}) with config: model='{name}', "
            f"dtype=torch.bfloat16, tensor_parallel_size={said.get('tensor_parallel_size', '1')}, "
            f"enforce_eager={said.get('enforce_eager', 'false').title()}, "
            f"kv_cache_dtype={said.get('kv_cache_dtype', 'auto')}",
        ),
    ]


def _line(where: str, text: str) -> str:
    return f"INFO 06-14 09:41:39 [{where}] {text}"


def _literal(text: str) -> str:
    if text in {"true", "false"}:
        return text.title()
    return text if text.replace(".", "").isdecimal() else f"'{text}'"


def _memory(utilization: float, printed: Printed) -> list[str]:
    return [
        _line(
            "gpu_model_runner.py:1146",
            f"Model loading took {printed.weights:.2f} GiB memory and 12.250000 seconds",
        ),
        _line(
            "gpu_model_runner.py:6410",
            f"Estimated CUDA graph memory: {printed.cudagraph_estimate:.2f} GiB total",
        ),
        _line(
            "gpu_model_runner.py:7232",
            f"Graph capturing finished in 21 secs, took {printed.cudagraph:.2f} GiB",
        ),
        _line(
            "gpu_worker.py:955",
            f"Free memory on device ({printed.free:.2f}/{printed.total:.2f} GiB) on startup. "
            f"Desired GPU memory utilization is ({utilization}, "
            f"{printed.total * utilization:.2f} GiB). Actual usage is {printed.weights:.2f} GiB "
            f"for weight, {printed.peak_activation:.2f} GiB for peak activation, "
            f"{printed.non_torch:.2f} GiB for non-torch memory, and {printed.cudagraph:.2f} GiB "
            "for CUDAGraph memory.",
        ),
    ]


def _cache(request: SizingRequest, printed: Printed) -> list[str]:
    measured = Measured(available_kv_cache_memory_bytes=round(printed.available * GIB))
    cache = size(replace(request, measured=measured)).cache
    assert cache is not None
    lines = [
        _line("gpu_worker.py:298", f"Available KV cache memory: {printed.available:.2f} GiB"),
        _line("kv_cache_utils.py:566", f"GPU KV cache size: {cache.kv_cache_size_tokens:,} tokens"),
        _line(
            "kv_cache_utils.py:569",
            f"Maximum concurrency for {cache.max_model_len:,} tokens per request: "
            f"{cache.max_concurrency:.2f}x",
        ),
    ]
    override = request.engine_args.num_gpu_blocks_override
    if override is not None:
        overriding = f"Overriding num_gpu_blocks=99999 with num_gpu_blocks_override={override}"
        lines.insert(1, _line("kv_cache_utils.py:900", overriding))
    return lines


def read(text: str, **chosen: str) -> ReadStart:
    """Read the last start of a log; `chosen` is what a person says beside it."""
    return read_start(read_start_log(text).starts[-1], catalogue(), chosen)
