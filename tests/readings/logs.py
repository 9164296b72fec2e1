"""Whole start logs in the format of any release, with numbers that satisfy vLLM's arithmetic."""

from dataclasses import dataclass
from typing import Final

from app.readings.observation import Value
from tests.readings.line_table import row_for
from tests.readings.releases import (
    api_tag,
    engine_tag,
    number,
    record,
    within,
    worker_tag,
)
from tests.readings.servers import GIB, Figures, Server, figures_of


@dataclass(frozen=True)
class StartLog:
    """A log as text, and what a reader must find in it."""

    text: str
    expected: dict[str, Value]
    version: str
    server: Server


def start_log(version: str, server: Server, *, debug: bool = False) -> StartLog:
    """A successful start of the release's default engine."""
    writer = _Writer(version, server)
    writer.announce()
    writer.load()
    if number(version) < (0, 8):
        writer.profile_v0()
    else:
        writer.profile_v1(debug=debug)
    writer.finish(debug=debug)
    return StartLog("\n".join(writer.lines), writer.expected, version, server)


_V0_FILES: Final = {"gpu_model_runner.py": "model_runner.py", "core.py": "llm_engine.py"}


class _Writer:
    def __init__(self, version: str, server: Server) -> None:
        self.version = version
        self.server = server
        self.lines: list[str] = []
        self.expected: dict[str, Value] = {
            "vllm_version": version,
            "model": server.model,
            "tensor_parallel_size": server.tensor_parallel_size,
            "max_model_len": server.max_model_len,
        }
        self.figures = [
            figures_of(self.version, server, rank) for rank in range(server.tensor_parallel_size)
        ]
        self.binding = min(self.figures, key=lambda each: each.blocks)

    def at_least(self, version: str) -> bool:
        return number(self.version) >= number(version)

    def write(
        self, kind: str, tag: str, line: int, row: str | None = None, **values: Value
    ) -> dict[str, Value]:
        """Write one line of a kind; the values as the reader must return them."""
        wording = row_for(kind, self.version, row)
        text = wording.printed(**values)
        file = wording.file if self.at_least("0.8.0") else _V0_FILES.get(wording.file, wording.file)
        self.lines.append(record(self.version, tag, file, line, text, wording.level))
        return wording.expected(**values)

    def workers(self) -> list[str]:
        size = self.server.tensor_parallel_size
        return [worker_tag(self.version, rank, tensor_parallel_size=size) for rank in range(size)]

    def announce(self) -> None:
        server, tag = self.server, api_tag(self.version)
        if self.at_least("0.7.3"):
            self.write("platform", "", 239, platform="cuda")
        self.write("vllm_version", tag, 339, vllm_version=self.version)
        self.lines.append(record(self.version, tag, "api_utils.py", 273, self._arguments()))
        if self.at_least("0.9.2"):
            self.write("max_model_len", tag, 1745, max_model_len=server.max_model_len)
        self.expected |= self.write(
            "max_num_batched_tokens", tag, 239, max_num_batched_tokens=server.max_num_batched_tokens
        )
        engine = "an LLM" if number(self.version) < (0, 8) else "a V1 LLM"
        self.lines.append(
            record(
                self.version,
                engine_tag(self.version),
                "core.py" if self.at_least("0.8.0") else "llm_engine.py",
                109,
                f"Initializing {engine} engine (v{self.version}) with config: "
                f"model='{server.model}', speculative_config=None, tokenizer='{server.model}', "
                f"skip_tokenizer_init=False, dtype=torch.bfloat16, max_seq_len="
                f"{server.max_model_len}, tensor_parallel_size={server.tensor_parallel_size}, "
                f"pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype="
                f"{'auto' if server.kv_bytes == 2 else 'fp8'}, device_config=cuda, "
                f"observability_config=ObservabilityConfig(otlp_traces_endpoint=None), seed=0, "
                f"compilation_config={{'level': 3, 'cudagraph_capture_sizes': [512, 256, 8, 1], "
                f"'splitting_ops': ['our.attention', 'our.mixer'], 'mode': <Mode.FULL: 2>}}",
            )
        )

    def _arguments(self) -> str:
        server = self.server
        given = f"'max_model_len': {server.max_model_len}"
        if server.tensor_parallel_size > 1:
            given += f", 'tensor_parallel_size': {server.tensor_parallel_size}"
        if server.gpu_memory_utilization is not None:
            given += f", 'gpu_memory_utilization': {server.gpu_memory_utilization}"
        if self.at_least("0.9.0"):
            return f"non-default args: {{'model': '{server.model}', {given}}}"
        every = given.replace("'", "").replace(": ", "=")
        return f"args: Namespace(subparser='serve', model_tag='{server.model}', {every}, seed=None)"

    def load(self) -> None:
        server = self.server
        rank_gib = round(server.weights_gib / server.tensor_parallel_size, 2)
        if self.at_least("0.29.0"):
            self.write("v2_model_runner", engine_tag(self.version), 500)
        for rank, tag in enumerate(self.workers()):
            if self.at_least("0.8.0"):
                self.write("weights_loading", tag, 308, load_seconds=9.5 + rank)
            row = "4" if self.at_least("0.11.2") else "3" if self.at_least("0.8.5") else None
            values: dict[str, Value] = {"weights_gib": rank_gib}
            if self.at_least("0.8.0"):
                values["load_seconds"] = 12.25
            self.expected |= self.write("model_loading", tag, 1146, row, **values)

    def profile_v0(self) -> None:
        server = self.server
        for figures, tag in zip(self.figures, self.workers(), strict=True):
            budget = row_for("v0_memory_budget", self.version).printed(
                total_memory_gib=server.total_gib,
                gpu_memory_utilization=figures.utilization,
                requested_memory_gib=figures.requested / GIB,
            )
            terms = row_for("v0_memory_profile", self.version).printed(
                weights_gib=server.weights_gib / server.tensor_parallel_size,
                non_torch_gib=server.non_torch_gib,
                peak_activation_gib=server.activation_gib,
                available_kv_cache_gib=figures.available / GIB,
            )
            text = f"Memory profiling takes 0.75 seconds\n{budget}\n{terms}"
            self.lines.append(record(self.version, tag, "worker.py", 267, text))
        self.expected |= {
            "total_memory_gib": server.total_gib,
            "requested_memory_gib": round(self.binding.requested / GIB, 2),
            "peak_activation_gib": server.activation_gib,
            "available_kv_cache_gib": round(self.binding.available / GIB, 2),
            "num_gpu_blocks": self.binding.blocks,
            "num_cpu_blocks": 2048,
        }
        self.write(
            "num_gpu_blocks", "", 111, num_gpu_blocks=self.binding.blocks, num_cpu_blocks=2048
        )
        self._concurrency("")

    def _concurrency(self, tag: str) -> None:
        self.expected |= self.write(
            "max_concurrency",
            tag,
            569,
            max_concurrency_len=self.server.max_model_len,
            max_concurrency=self.binding.concurrency,
        )

    def profile_v1(self, *, debug: bool) -> None:
        server = self.server
        for figures, tag in zip(self.figures, self.workers(), strict=True):
            if debug and within(self.version, "0.10.1", None):
                self.expected |= self.write(
                    "initial_free_memory",
                    tag,
                    361,
                    free_memory_gib=server.free_gib,
                    gpu_memory_utilization=figures.utilization,
                    requested_memory_gib=round(figures.requested / GIB, 2),
                )
            if self.at_least("0.29.0"):
                # The sampled capture of the V2 runner: its figure is not the graphs' memory.
                self.write("graph_capture", tag, 1164, capture_seconds=3.0, cudagraph_gib=0.08)
            elif self.at_least("0.18.1"):
                self.write("cudagraph_profiling", tag, 6304)
                self.write(
                    "cudagraph_estimate", tag, 6410, cudagraph_estimate_gib=server.estimate_gib
                )
        self._available()
        if self.at_least("0.20.0"):
            self._estimate_note()
        self._sizes()

    def _available(self) -> None:
        if not self.at_least("0.9.2"):
            return
        ranks = list(zip(self.figures, self.workers(), strict=True))
        if self.at_least("0.11.2"):
            ranks = [(self.binding, self.workers()[0])]
        for figures, tag in ranks:
            read = self.write(
                "available_kv_cache_memory",
                tag,
                298,
                available_kv_cache_gib=round(figures.available / GIB, 2),
            )
            if figures is self.binding:
                self.expected |= read

    def _estimate_note(self) -> None:
        server, utilization = self.server, self.binding.utilization
        share = server.estimate_gib / server.total_gib
        for tag in self.workers():
            self.write(
                "cudagraph_profiling_enabled",
                tag,
                475,
                gpu_memory_utilization=utilization,
                equivalent_gpu_memory_utilization=utilization - share,
                suggested_gpu_memory_utilization=utilization + share,
            )

    def _sizes(self) -> None:
        tag = engine_tag(self.version)
        length = self.server.max_model_len
        if self.at_least("0.28.0"):
            self.expected |= self.write(
                "kv_cache_size_and_concurrency",
                tag,
                2464,
                kv_cache_size_tokens=self.binding.tokens,
                max_concurrency_len=length,
                max_concurrency=self.binding.concurrency,
            )
            return
        # Up to 0.10 one pair for every worker, each with the blocks of its own.
        per_worker = self.figures if not self.at_least("0.11.0") else [self.binding]
        for figures in per_worker:
            read = self.write(
                "kv_cache_size", tag, 566, kv_cache_size_tokens=figures.tokens
            ) | self.write(
                "max_concurrency",
                tag,
                569,
                max_concurrency_len=length,
                max_concurrency=figures.concurrency,
            )
            if figures is self.binding:
                self.expected |= read

    def finish(self, *, debug: bool) -> None:
        server = self.server
        for figures, tag in zip(self.figures, self.workers(), strict=True):
            self.write(
                "graph_capture", tag, 7232, capture_seconds=21.0, cudagraph_gib=server.graphs_gib
            )
            if self.at_least("0.18.1"):
                self.write(
                    "cudagraph_pool",
                    tag,
                    621,
                    cudagraph_gib=server.graphs_gib,
                    cudagraph_estimate_gib=server.estimate_gib,
                )
                self.expected["cudagraph_estimate_gib"] = server.estimate_gib
            if self.at_least("0.10.2") and (debug or self._summary_is_shown()):
                self._summary(figures, tag)
        self.expected["cudagraph_gib"] = server.graphs_gib
        self.expected |= self.write(
            "engine_ready", engine_tag(self.version), 340, init_seconds=44.5
        )

    def _summary_is_shown(self) -> bool:
        return row_for("memory_summary", self.version).level == "INFO"

    def _summary(self, figures: Figures, tag: str) -> None:
        server = self.server
        weights = round(server.weights_gib / server.tensor_parallel_size, 2)
        drift = self.figures[0].available - figures.available
        non_torch = round(server.non_torch_gib + drift / GIB, 2)
        safety = 150 * 2**20
        graphs = int(server.graphs_gib * GIB)
        self.write(
            "memory_summary",
            tag,
            955,
            free_memory_gib=server.free_gib,
            total_memory_gib=server.total_gib,
            gpu_memory_utilization=figures.utilization,
            requested_memory_gib=round(figures.requested / GIB, 2),
            weights_gib=weights,
            peak_activation_gib=round(
                server.activation_gib + (server.estimate_gib if self.version == "0.18.1" else 0), 2
            ),
            non_torch_gib=non_torch,
            cudagraph_gib=server.graphs_gib,
            consumed_gib=round(weights + non_torch, 2),
            peak_activation_printed_gib=round(server.activation_gib + server.estimate_gib, 2),
            suggested_kv_cache_memory_bytes=figures.available - graphs - safety,
            suggested_gib=round((figures.available - graphs - safety) / GIB, 2),
            max_kv_cache_memory_bytes=figures.available + int(2.5 * GIB),
            max_gib=round(figures.available / GIB + 2.5, 2),
            kv_cache_in_use_gib=round(figures.available / GIB, 2),
            kv_cache_in_use_bytes=figures.available,
        )
        self.expected |= {
            "total_memory_gib": server.total_gib,
            "free_memory_gib": server.free_gib,
            "gpu_memory_utilization": figures.utilization,
            "requested_memory_gib": round(figures.requested / GIB, 2),
            "peak_activation_gib": server.activation_gib,
            "suggested_kv_cache_memory_bytes": self.binding.available - graphs - safety,
            "max_kv_cache_memory_bytes": self.binding.available + int(2.5 * GIB),
        }
        if self.at_least("0.27.1"):
            self.expected["consumed_gib"] = round(weights + self._last_non_torch(), 2)
        else:
            self.expected["non_torch_gib"] = self._last_non_torch()

    def _last_non_torch(self) -> float:
        drift = self.figures[0].available - self.figures[-1].available
        return round(self.server.non_torch_gib + drift / GIB, 2)
