"""The sizing of the JSON API: worked figures, refusals, and the shape of an answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.configs import LLAMA_CONFIG
from tests.strict_client import StrictClient

LLAMA = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "8192",
}
GOLDEN_SHAPE = Path(__file__).parents[1] / "golden" / "api_shape.json"
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(client: StrictClient) -> Ask:
    """Return a function that sizes by query and expects an answer."""

    def sizing(**inputs: str | float | None) -> dict[str, Any]:
        query = {name: value for name, value in inputs.items() if value is not None}
        response = client.get(f"/api/v1/sizing?{urlencode(query)}")
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    return sizing


@pytest.mark.parametrize(
    ("changes", "requests"),
    [
        ({}, 12),
        ({"kv_cache_dtype": "bfloat16"}, 6),
        ({"kv_cache_dtype": "nvfp4"}, 21),
        ({"replicas": 2}, 24),
        ({"tensor_parallel_size": 2}, 78),
        ({"gpu": "h200-nvl"}, 44),
    ],
)
def test_worked_figures_of_the_planning_rule(
    ask: Ask, changes: dict[str, Any], requests: int
) -> None:
    """The vendor's rule gives the figures the vendor publishes for Llama 3.3 70B in FP8."""
    answer = ask(**{**LLAMA, **changes})
    assert answer["planning"]["requests"] == requests
    assert answer["verdict"]["requests"] <= requests


def test_the_verdict_is_the_planned_twelve(ask: Ask) -> None:
    """On one RTX PRO 6000 both figures allow 12 requests of 8,192 tokens."""
    answer = ask(**LLAMA)
    assert answer["ok"] is True
    assert answer["verdict"] == {"requests": 12, "fits": True}
    assert answer["range"]["max_concurrency"]["low"] >= 12


def test_a_given_utilization_enters_the_planning_rule(ask: Ask) -> None:
    """At 0.92 the rule gives 13.8 before rounding down."""
    answer = ask(**LLAMA, gpu_memory_utilization="0,92")
    assert round(answer["planning"]["max_concurrency"], 1) == 13.8


def test_a_full_context_is_less_than_one_and_has_a_way_out_that_fits(ask: Ask) -> None:
    """At 131,072 tokens 0.77 requests fit; each way out, sized by itself, fits at least one."""
    answer = ask(**{**LLAMA, "max_model_len": "131072"})
    assert answer["ok"] is False
    assert answer["reason"]["code"] == "kv_cache_too_small"
    assert "131072" in answer["reason"]["vllm_error"]
    assert round(answer["planning"]["max_concurrency"], 2) == 0.77
    assert answer["verdict"] == {"requests": 0, "fits": False}
    ways = answer["reason"]["ways_out"]
    assert "max_model_len" in ways[0]["change"]
    for way in ways:
        changed = ask(**{**LLAMA, "max_model_len": "131072", **way["change"]})
        assert changed["ok"] is True
        assert changed["verdict"]["requests"] >= 1
        assert changed["max_concurrency"] == way["max_concurrency"]


def test_a_given_memory_is_exact(ask: Ask) -> None:
    """With a measured memory the arithmetic carries no range, and the log line is the release's."""
    memory = 643232 // 16 * 2621440
    answer = ask(**{**LLAMA, "max_model_len": "40960"}, available_kv_cache_memory_bytes=memory)
    assert answer["range"] is None
    assert answer["kv_cache_size_tokens"] == 643232
    (line,) = answer["log_lines"]
    assert line.startswith("GPU KV cache size: 643,232 tokens")
    assert line.endswith("Maximum concurrency for 40,960 tokens per request: 15.70x")
    assert answer["max_concurrency"] == 643232 / 40960


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tensor_parallel_size": 3}, "heads_not_divisible"),
        ({"max_model_len": "200000"}, "context_too_long"),
        ({"checkpoint": "bf16"}, "weights_do_not_fit"),
        ({"tensor_parallel_size": 2, "decode_context_parallel_size": 2}, "dcp_not_supported"),
        ({"kv_cache_dtype": "nvfp4", "vllm_version": "0.9.2"}, "kv_dtype_not_supported"),
        ({"kv_cache_memory_bytes": "1G"}, "kv_cache_too_small"),
    ],
)
def test_what_vllm_refuses_is_an_answer(ask: Ask, changes: dict[str, Any], code: str) -> None:
    """A refusal is HTTP 200 with its reason, the numbers behind it, and checked ways out."""
    answer = ask(**{**LLAMA, **changes})
    assert answer["ok"] is False
    assert answer["reason"]["code"] == code
    assert answer["reason"]["numbers"]
    assert answer["reason"]["ways_out"]
    assert answer["verdict"] == {"requests": 0, "fits": False}


def test_memory_terms_sum_to_the_card(ask: Ask) -> None:
    """The likely values of all terms add up to what vLLM sees of the card."""
    answer = ask(**LLAMA)
    assert sum(term["likely"] for term in answer["memory"]) == answer["gpu"]["total_memory_bytes"]
    assert [term["code"] for term in answer["memory"]] == [
        "weights",
        "peak_activation",
        "persistent_buffers",
        "non_torch",
        "cudagraph_estimate",
        "kv_cache",
        "outside_utilization",
    ]


def test_what_was_chosen_for_the_person_is_an_assumption(ask: Ask) -> None:
    """A precision that several checkpoints have names the one taken: the maker's, then nvidia's."""
    answer = ask(**{**LLAMA, "checkpoint": "fp8"})
    chosen = {each["code"]: each["values"] for each in answer["assumptions"]}["checkpoint_chosen"]
    assert chosen["checkpoint"] == "nvidia/Llama-3.3-70B-Instruct-FP8"
    assert chosen["matching"] > 1
    assert answer["model"]["checkpoint"] == chosen["checkpoint"]


def test_not_sure_is_answered_with_documented_defaults(ask: Ask) -> None:
    """Every "I am not sure" becomes a value that the answer names."""
    answer = ask(
        model="llama-3.3-70b",
        checkpoint="unsure",
        gpu="unsure",
        max_model_len="unsure",
        kv_cache_dtype="unsure",
        tensor_parallel_size="unsure",
    )
    named = {
        each["values"]["field"]: each["values"]["value"]
        for each in answer["assumptions"]
        if each["code"] == "not_sure"
    }
    assert named == {
        "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
        "gpu": "rtx-pro-6000-server",
        "max_model_len": 8192,
        "kv_cache_dtype": "auto",
        "tensor_parallel_size": 1,
    }
    assert answer["verdict"]["requests"] == 12


def test_a_release_between_two_rows_says_which_one_answers(ask: Ask) -> None:
    """An unknown patch release is answered by the row below it, a future one extrapolated."""
    codes = {
        version: {each["code"] for each in ask(**LLAMA, vllm_version=version)["assumptions"]}
        for version in ("0.32.0", "v0.32.0rc1", "0.99.0", "nightly")
    }
    assert "default_release" in codes["0.32.0"]
    assert "release_approximate" in codes["v0.32.0rc1"]
    assert "release_extrapolated" in codes["0.99.0"]
    assert "release_newest" in codes["nightly"]


def test_a_card_may_be_given_by_its_memory_alone(ask: Ask) -> None:
    """Without a slug the total memory is enough for an answer."""
    answer = ask(model="llama-3.1-8b", gpu_total_memory_bytes=85_000_000_000, max_model_len="8k")
    assert answer["ok"] is True
    assert answer["gpu"]["slug"] is None
    assert answer["max_model_len"] == 8000


def test_the_measured_load_is_checked(ask: Ask) -> None:
    """Peak and mean length give the checks, with the numbers they compared."""
    answer = ask(**LLAMA, peak_requests=20, mean_request_tokens=1500)
    codes = [each["code"] for each in answer["load"]]
    assert codes == ["peak_exceeds_worst_case", "cache_reached_first"]


def test_steps_end_in_the_figures_of_the_answer(ask: Ask) -> None:
    """Every step has a source, and the printed concurrency is the result of one."""
    answer = ask(**LLAMA)
    assert all(step["source"] and step["unit"] for step in answer["steps"])
    results = [step["result"] for step in answer["steps"]]
    assert answer["max_concurrency"] in results
    assert answer["verdict"]["requests"] in results


def test_the_permalink_holds_the_answers(ask: Ask, client: StrictClient) -> None:
    """The query of the permalink, sent back to the API, gives the same answer and permalink."""
    answer = ask(**LLAMA, kv_cache_dtype="fp8")
    query = answer["permalink"].partition("?")[2]
    again = client.get(f"/api/v1/sizing?{query}")
    assert again.json() == answer


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_permalink_opens_a_page(client: StrictClient, language: str) -> None:
    """The link of an answer is a page in the program's language, with the same verdict."""
    response = client.get(
        f"/api/v1/sizing?{urlencode(LLAMA)}", headers={"Accept-Language": language}
    )
    link = response.json()["permalink"]
    assert link.startswith(f"/{language}/")
    page = client.get(link)
    assert page.status_code == 200
    assert response.json()["log_lines"][0] in page.text


def test_a_pasted_config_travels_in_the_permalink(client: StrictClient) -> None:
    """What was posted as a config.json is asked again with the link alone."""
    body = {"hf_config": LLAMA_CONFIG, "gpu": "h200-nvl", "max_model_len": "8K"}
    answer = client.post("/api/v1/sizing", json=body).json()
    assert answer["ok"] is True
    assert answer["model"]["slug"] is None
    again = client.get(f"/api/v1/sizing?{answer['permalink'].partition('?')[2]}")
    assert again.json() == answer


def test_post_is_get(ask: Ask, client: StrictClient) -> None:
    """The same inputs as a JSON object, typed or as text, give the same answer."""
    answer = ask(**LLAMA, gpu_memory_utilization=0.92, enforce_eager="true")
    typed = {**LLAMA, "max_model_len": 8192, "gpu_memory_utilization": 0.92, "enforce_eager": True}
    as_text = {**LLAMA, "gpu_memory_utilization": "0.92", "enforce_eager": "true"}
    for body in (typed, as_text, {**typed, "max_model_len": 8192.0, "replicas": None}):
        response = client.post("/api/v1/sizing", json=body)
        assert response.status_code == 200, response.text
        assert response.json() == answer


def shape_of(value: object) -> object:
    """Reduce an answer to its keys and the kinds of its values."""
    match value:
        case dict():
            return {key: shape_of(inner) for key, inner in sorted(value.items())}
        case list():
            return [shape_of(value[0])] if value else []
        case bool() | str() | None:
            return type(value).__name__
        case _:
            return "number"


def test_the_shape_is_the_golden_one(ask: Ask) -> None:
    """No key of an answer appears, disappears or changes its kind unnoticed."""
    answer = ask(**{**LLAMA, "max_model_len": "131072"})
    fits = ask(**LLAMA)
    for each in (answer, fits):
        for free in ("assumptions", "steps", "engine_args"):
            assert each.pop(free)
        each["reason"] = each["reason"] and {
            **each["reason"], "numbers": {}, "ways_out": each["reason"]["ways_out"][:1],
        }  # fmt: skip
    found = {"fits": shape_of(fits), "does_not_fit": shape_of(answer)}
    assert found == json.loads(GOLDEN_SHAPE.read_text(encoding="utf-8"))
