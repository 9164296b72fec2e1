"""Commands as people paste them: every shell, every list, every word processor."""

import pytest

from app.readings.observation import ArgValue, Observation
from app.readings.start_log import read_start_log
from tests.readings.line_table import row_for
from tests.readings.logs import start_log
from tests.readings.servers import SERVERS

MODEL = "our-org/our-8B"


def _start(text: str) -> Observation:
    (start,) = read_start_log(text).starts
    return start


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"vllm serve {MODEL} --tensor-parallel-size 2 --max-model-len 8k -O3 --enforce-eager",
            {
                "model": MODEL, "tensor_parallel_size": 2, "max_model_len": 8000,
                "optimization_level": 3, "enforce_eager": True,
            },
            id="plain",
        ),
        pytest.param(
            f"$ VLLM_USE_V1=1 vllm serve {MODEL} -tp=4 --max_model_len=32K --dtype 'bfloat16'",
            {
                "model": MODEL, "tensor_parallel_size": 4, "max_model_len": 32768,
                "dtype": "bfloat16",
            },
            id="short forms and underscores",
        ),
        pytest.param(
            "docker run --gpus all \\\n  -v ~/.cache:/root -p 8000:8000 --ipc=host \\\n"
            "  -e HF_TOKEN=none \\\n  vllm/vllm-openai:v0.24.0 \\\n"
            f"  --model {MODEL} \\\n  --kv-cache-dtype fp8 \\\n"
            "  --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": 2}'",
            {
                "model": MODEL, "kv_cache_dtype": "fp8",
                "speculative_config": {"method": "mtp", "num_speculative_tokens": 2},
            },
            id="docker with continuation lines",
        ),
        pytest.param(
            "services:\n  vllm:\n    image: vllm/vllm-openai:latest\n    command: >\n"
            f"      --model {MODEL}\n      --max-num-seqs 64\n"
            "      --limit-mm-per-prompt.image 2\n    restart: always\n",
            {"model": MODEL, "max_num_seqs": 64, "limit_mm_per_prompt": {"image": 2}},
            id="compose",
        ),
        pytest.param(
            f'    args:\n    - --model\n    - {MODEL}\n    - --max-model-len\n    - "16384"\n'
            '    - "--gpu-memory-utilization=0.95"\n',
            {"model": MODEL, "max_model_len": 16384, "gpu_memory_utilization": 0.95},
            id="Kubernetes list",
        ),
        pytest.param(
            f'command: ["vllm", "serve", "{MODEL}", "--max-num-batched-tokens", "8192"]',
            {"model": MODEL, "max_num_batched_tokens": 8192},
            id="JSON list",
        ),
        pytest.param(
            f"python -m vllm.entrypoints.openai.api_server --model {MODEL} --block-size 32 "
            "--served-model-name chat --no-enable-prefix-caching",
            {
                "model": MODEL, "block_size": 32, "served_model_name": "chat",
                "enable_prefix_caching": False,
            },
            id="module",
        ),
        pytest.param(
            f"PS C:\\> vllm serve {MODEL} `\n  --max-model-len 4096 `\n"
            "  --hf-overrides '{\\\"max_position_embeddings\\\":4096}'",
            {
                "model": MODEL, "max_model_len": 4096,
                "hf_overrides": {"max_position_embeddings": 4096},
            },
            id="PowerShell",
        ),
        pytest.param(
            f"C:\\> vllm serve {MODEL} ^\n  --max-model-len 4096 ^\n"
            '  --speculative-config "{\\"method\\": \\"ngram\\"}"',
            {"model": MODEL, "max_model_len": 4096, "speculative_config": {"method": "ngram"}},
            id="cmd",
        ),
        pytest.param(
            f"vllm serve \u201c{MODEL}\u201d \u2013max-model-len 4096 \u2014tensor-parallel-size 2",
            {"model": MODEL, "max_model_len": 4096, "tensor_parallel_size": 2},
            id="word processor",
        ),
        pytest.param(
            f'bash -c "exec vllm serve {MODEL} --max-model-len auto"',
            {"model": MODEL, "max_model_len": -1},
            id="a command in a command",
        ),
        pytest.param(
            f"I start it with `vllm serve {MODEL} --cpu-offload-gb 4` on one card.",
            {"model": MODEL, "cpu_offload_gb": 4.0},
            id="in a sentence",
        ),
        pytest.param(
            f'llm = LLM(model="{MODEL}", tensor_parallel_size=2,\n    max_model_len=4096,\n'
            '    kv_cache_dtype="fp8", compilation_config={"cudagraph_capture_sizes": [1, 8]})',
            {
                "model": MODEL, "tensor_parallel_size": 2, "max_model_len": 4096,
                "kv_cache_dtype": "fp8", "max_cudagraph_capture_size": 8,
            },
            id="Python",
        ),
        pytest.param(
            f'LLM("{MODEL}", gpu_memory_utilization=0.8)',
            {"model": MODEL, "gpu_memory_utilization": 0.8},
            id="Python, model first",
        ),
        pytest.param(
            f"vllm serve --host 0.0.0.0 --port 8000 {MODEL} --trust-remote-code --max-num-seqs 8",
            {"model": MODEL, "max_num_seqs": 8},
            id="model behind other flags",
        ),
        pytest.param(
            f"vllm serve {MODEL} --max-model-len 4096 --max-model-len 8192",
            {"model": MODEL, "max_model_len": 8192},
            id="the last of two counts",
        ),
        pytest.param(
            f"vllm serve {MODEL} --speculative-model our-org/draft --num-speculative-tokens 5",
            {
                "model": MODEL,
                "speculative_config": {"model": "our-org/draft", "num_speculative_tokens": 5},
            },
            id="older flags for drafts",
        ),
        pytest.param(
            "vllm serve $MODEL --tensor-parallel-size ${TP} --max-model-len 1.5K --max-num-seqs 4",
            {"max_num_seqs": 4},
            id="variables and what vLLM refuses are left out",
        ),
    ],
)  # fmt: skip
def test_a_command_is_read(text: str, expected: dict[str, ArgValue]) -> None:
    """Engine arguments come out under vLLM's names, in their types."""
    start = _start(text)
    assert start.engine_args == expected
    assert start.explicit_args == expected.keys()
    assert start.model == expected.get("model")


def test_environment_and_image_are_read() -> None:
    """Variables that bear on memory, and the release in the image's tag."""
    start = _start(
        "    image: vllm/vllm-openai:v0.27.1-x86_64\n    environment:\n"
        '      - VLLM_USE_V2_MODEL_RUNNER=0\n      VLLM_BATCH_INVARIANT: "1"\n'
        "      - name: VLLM_KV_CACHE_LAYOUT\n        value: HND\n      - HF_TOKEN=none\n"
        f"    command: --model {MODEL}\n"
    )  # fmt: skip
    assert start.vllm_version == "0.27.1"
    assert start.environment == {
        "VLLM_USE_V2_MODEL_RUNNER": "0", "VLLM_BATCH_INVARIANT": "1", "VLLM_KV_CACHE_LAYOUT": "HND",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        (
            "(APIServer pid=1) WARNING 06-14 09:41:00 [argparse_utils.py:257] With `vllm serve`, "
            "you should provide the model as a positional argument instead of via `--model`."
        ),
        row_for("cudagraph_profiling_enabled", "0.32.0").printed(),
        row_for("memory_summary", "0.32.0").printed(),
        "usage: vllm serve [model_tag] [options] --max-model-len MAX_MODEL_LEN",
        "class LLM(nn.Module):\n    model = 1",
        "We tried --max-model-len 4096 once.",
    ],
)
def test_talk_about_flags_is_no_command(text: str) -> None:
    """vLLM's own advice, help texts and prose set nothing."""
    assert [line.kind for line in read_start_log(text).lines if line.kind == "command"] == []


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_command_belongs_to_the_log_beside_it(where: str) -> None:
    """A command and its log are one start; what the log itself states has the last word."""
    command = "vllm serve something-else --max-num-seqs 64 --max-model-len 1024"
    log = start_log("0.32.0", SERVERS[0])
    text = f"{command}\n{log.text}" if where == "before" else f"{log.text}\n\n{command}"
    start = _start(text)
    assert start.model == SERVERS[0].model
    assert start.engine_args["max_model_len"] == SERVERS[0].max_model_len
    assert start.engine_args["max_num_seqs"] == 64
    assert start.vllm_version == "0.32.0"


def test_a_log_on_the_same_line_is_still_read() -> None:
    """Where copying lost the line breaks, the command ends where the first record begins."""
    text = f"vllm serve {MODEL} --max-num-seqs 4 " + start_log("0.32.0", SERVERS[0]).text
    start = _start(text.replace("\n", " "))
    assert start.engine_args["max_num_seqs"] == 4
    assert start.observed.kv_cache_size_tokens is not None
