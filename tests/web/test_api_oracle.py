"""The published cases over HTTP: what the API answers is what vLLM's own code worked out."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.strict_client import StrictClient

GOLDEN = Path(__file__).parents[1] / "golden"
FIGURES = {
    "num_gpu_blocks": "num_gpu_blocks",
    "block_size": "block_size",
    "bytes_per_block": "bytes_per_block",
    "tokens": "kv_cache_size_tokens",
    "concurrency": "max_concurrency",
    "max_model_len": "max_model_len",
}
EVERY = 13


def golden(name: str) -> Any:  # noqa: ANN401 - JSON
    """Read a golden file."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


@cache
def models() -> dict[str, dict[str, Any]]:
    """Return the configs of the published cases."""
    facts: dict[str, dict[str, Any]] = golden("oracle_models.json")
    return facts


def answer_to(client: StrictClient, row: dict[str, Any]) -> dict[str, Any]:
    """Ask for a published case with its config pasted."""
    facts = models()[row["model"]]
    response = client.post(
        "/api/v1/sizing",
        json={
            "hf_config": facts["config"],
            **({"hf_quant_config": facts["hf_quant_config"]} if "hf_quant_config" in facts else {}),
            "gpu": row["gpu"],
            "vllm_version": row["release"],
            "available_kv_cache_memory_bytes": row["available_bytes"],
            **row.get("layout", {}),
            **row.get("engine_args", {}),
        },
    )
    assert response.status_code == 200, (row["id"], response.text)
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.parametrize("row", golden("oracle_cases.json")[::EVERY], ids=lambda row: row["id"])
def test_published_cases_over_http(client: StrictClient, row: dict[str, Any]) -> None:
    """Blocks, tokens, concurrency and refusals are exact; weights per rank within 0.1 %."""
    answer, expected = answer_to(client, row), row["expected"]
    if "reason" in expected:
        assert answer["ok"] is False
        assert answer["reason"]["code"] == expected["reason"]
        assert answer["reason"]["vllm_error"].strip() == expected["vllm_error"]
    else:
        assert {key: answer[FIGURES[key]] for key in FIGURES} == {
            key: expected[key] for key in FIGURES
        }
    weights = expected.get("weights_bytes_per_rank")
    if weights is not None:
        largest = max(weights) if isinstance(weights, list) else weights
        assert answer["weights_bytes_per_rank"] == pytest.approx(largest, rel=0.001)
