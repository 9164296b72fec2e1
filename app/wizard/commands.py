"""Commands that start a sizing: `vllm serve`, docker, compose and Kubernetes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Final

from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.units import AUTO_MAX_MODEL_LEN
from app.wizard.answers import Answers
from app.wizard.permalink import text_of

# In the order people read a command: how it is split, how long, how the cache is kept, the rest.
FLAGS: Final = (
    "revision",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "max_model_len",
    "kv_cache_dtype",
    "block_size",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "num_gpu_blocks_override",
    "max_num_batched_tokens",
    "max_num_seqs",
    "enforce_eager",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "async_scheduling",
    "disable_hybrid_kv_cache_manager",
    "mamba_cache_mode",
    "mamba_ssm_cache_dtype",
    "speculative_config",
    "dtype",
    "cpu_offload_gb",
    "max_cudagraph_capture_size",
    "limit_mm_per_prompt",
    "language_model_only",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
    "hf_overrides",
)
PORT: Final = 8000
MODELS_FOLDER: Final = "/root/.cache/huggingface"
_DEFAULTS: Final = Answers()


def serve_command(hf_id: str, answers: Answers) -> str:
    """Write the command for one copy: the checkpoint, then every flag that was chosen.

    One flag a line. A flag left at its default is left out, as vLLM would choose the same.
    """
    return _lines(["vllm serve " + shlex.quote(hf_id), *_shell_flags(answers)])


def container_commands(
    hf_id: str, answers: Answers, vllm_version: str, gpu: GpuSpec | None = None
) -> dict[str, str]:
    """Write every way to start the release's image, by name: docker, compose, kubernetes.

    A MIG slice is named as NVIDIA's container toolkit does (`0:1` is slice 1 of card 0), and in
    Kubernetes as the device plugin's mixed strategy does.
    """
    image = image_of(vllm_version)
    return {
        "docker": docker_command(hf_id, answers, image, gpu),
        "compose": compose_file(hf_id, answers, image, gpu),
        "kubernetes": kubernetes_deployment(hf_id, answers, image, gpu),
    }


def docker_command(hf_id: str, answers: Answers, image: str, gpu: GpuSpec | None = None) -> str:
    """Write `docker run` for one copy, on the first cards of the host."""
    parts = [
        f"""docker run --gpus '"device={",".join(_devices(answers, 0, gpu))}"'""",
        "--ipc=host",
        f"-p {PORT}:{PORT}",
        f"-v ~/.cache/huggingface:{MODELS_FOLDER}",
        image,
        f"--model {shlex.quote(hf_id)}",
    ]
    return _lines([*parts, *_shell_flags(answers)])


def compose_file(hf_id: str, answers: Answers, image: str, gpu: GpuSpec | None = None) -> str:
    """Write a compose file with one service for each copy, each on cards of its own."""
    lines = ["services:"]
    for copy in range(answers.replicas):
        devices = _devices(answers, copy, gpu)
        lines += [
            f"  vllm-{copy}:",
            f"    image: {image}",
            "    ipc: host",
            f'    ports: ["{PORT + copy}:{PORT}"]',
            f'    volumes: ["~/.cache/huggingface:{MODELS_FOLDER}"]',
            "    command:",
            *(f"      - {_yaml(word)}" for word in _words(hf_id, answers)),
            "    deploy:",
            "      resources:",
            "        reservations:",
            "          devices:",
            "            - driver: nvidia",
            f"              device_ids: {json.dumps(devices)}",
            "              capabilities: [gpu]",
        ]
    return "\n".join(lines)


def kubernetes_deployment(
    hf_id: str, answers: Answers, image: str, gpu: GpuSpec | None = None
) -> str:
    """Write a Deployment whose replicas are the copies; a Service in front shares the load."""
    resource = f"mig-{gpu.mig_profile}" if gpu is not None and gpu.mig_profile else "gpu"
    return "\n".join(
        [
            "apiVersion: apps/v1",
            "kind: Deployment",
            "metadata:",
            "  name: vllm",
            "spec:",
            f"  replicas: {answers.replicas}",
            "  selector:",
            "    matchLabels: {app: vllm}",
            "  template:",
            "    metadata:",
            "      labels: {app: vllm}",
            "    spec:",
            "      containers:",
            "        - name: vllm",
            f"          image: {image}",
            f"          ports: [{{containerPort: {PORT}}}]",
            "          args:",
            *(f"            - {_yaml(word)}" for word in _words(hf_id, answers)),
            "          resources:",
            f"            limits: {{nvidia.com/{resource}: {_cards_per_copy(answers)}}}",
            "          volumeMounts:",
            "            - {name: shm, mountPath: /dev/shm}",
            "      volumes:",
            "        - {name: shm, emptyDir: {medium: Memory}}",
        ]
    )


def image_of(vllm_version: str) -> str:
    """Name the image of a release on Docker Hub."""
    return f"vllm/vllm-openai:v{vllm_version}"


def _devices(answers: Answers, copy: int, gpu: GpuSpec | None) -> list[str]:
    """Number the cards of one copy, or its slice as card and slice."""
    cards = _cards_per_copy(answers)
    numbers = range(copy * cards, (copy + 1) * cards)
    if gpu is None or not gpu.mig_instances:
        return [str(number) for number in numbers]
    return ["{}:{}".format(*divmod(number, gpu.mig_instances)) for number in numbers]


def _cards_per_copy(answers: Answers) -> int:
    layout = Layout(
        answers.tensor_parallel_size, answers.pipeline_parallel_size, answers.data_parallel_size
    )
    return layout.cards


def _lines(parts: list[str]) -> str:
    return " \\\n  ".join(parts)


def _words(hf_id: str, answers: Answers) -> list[str]:
    words = ["--model", hf_id]
    for flag, value in _flags(answers):
        words += [flag] if value is None else [flag, value]
    return words


def _shell_flags(answers: Answers) -> list[str]:
    return [
        flag if value is None else f"{flag} {shlex.quote(value)}" for flag, value in _flags(answers)
    ]


def _flags(answers: Answers) -> Iterator[tuple[str, str | None]]:
    """Yield every chosen flag with its text; None for a switch."""
    for name in FLAGS:
        value = getattr(answers, name)
        if value is None or value == getattr(_DEFAULTS, name):
            continue
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            yield flag, None
        elif value is False:
            yield flag.replace("--", "--no-", 1), None
        elif name == "max_model_len" and value == AUTO_MAX_MODEL_LEN:
            yield flag, "auto"
        else:
            yield flag, text_of(value)


def _yaml(word: str) -> str:
    """Quote a word for YAML; single quotes are doubled there."""
    escaped = word.replace("'", "''")
    return f"'{escaped}'"
