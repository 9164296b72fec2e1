"""Whatever a program sends: a clear refusal, never a failure."""

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.catalog.catalogue import Catalogue
from app.wizard.inputs import BY_NAME
from tests.strict_client import StrictClient

BASE = {"model": "llama-3.1-8b", "gpu": "h100-80gb-hbm3", "max_model_len": "8192"}


def details(client: StrictClient, query: str) -> list[dict[str, Any]]:
    """Return what a refused query is told."""
    response = client.get(f"/api/v1/sizing?{query}")
    assert response.status_code == 422, response.text
    found: list[dict[str, Any]] = response.json()["detail"]
    return found


@pytest.mark.parametrize(
    ("changes", "loc", "code", "words"),
    [
        ({"max_model_len": "0"}, "max_model_len", "out_of_bounds", "100,000,000"),
        ({"max_model_len": "1000000000000"}, "max_model_len", "out_of_bounds", "100,000,000"),
        ({"max_model_len": "1.5K"}, "max_model_len", "decimals_with_binary_suffix", "1.5k"),
        ({"max_model_len": "3.2768"}, "max_model_len", "not_an_integer", "3.2768"),
        ({"model": "llama-3.3-70"}, "model", "unknown_model", "llama-3.3-70b"),
        ({"gpu": "h200-nv"}, "gpu", "unknown_gpu", "h200-nvl"),
        ({"checkpoint": "fp7"}, "checkpoint", "unknown_checkpoint", "fp7"),
        ({"server": "4x-h200-nv"}, "server", "unknown_server", "4x-h200-nv"),
        ({"server": "4x-h200-nvl"}, "gpu", "gpu_not_in_server", "h200-nvl"),
        ({"vllm_version": "latestest"}, "vllm_version", "unknown_release", "0.32.0"),
        ({"kv_cache_dtype": "fp88"}, "kv_cache_dtype", "unknown_value", "fp8"),
        ({"enforce_eager": "perhaps"}, "enforce_eager", "not_a_flag", "true"),
        ({"speculative_config": "[1]"}, "speculative_config", "not_an_object", "JSON"),
        ({"kv_cach_dtype": "fp8"}, "kv_cach_dtype", "unknown_name", "kv_cache_dtype"),
        ({"tp": "2"}, "tp", "unknown_name", "tensor_parallel_size"),
        ({"hf_config": "{}"}, "hf_config", "post_only", "POST"),
    ],
)
def test_bad_input_is_named(
    client: StrictClient, changes: dict[str, str], loc: str, code: str, words: str
) -> None:
    """Each entry that cannot be used is a 422 that says where, what, and what would do."""
    found = details(client, urlencode({**BASE, **changes}))
    match = [each for each in found if each["loc"] == ["query", loc]]
    assert match, found
    assert match[0]["code"] == code
    assert words in match[0]["msg"]


def test_every_problem_is_listed_at_once(client: StrictClient) -> None:
    """Three mistakes are three entries, so that nobody mends one after the other."""
    found = details(client, "model=x&gpu=y&max_model_len=z")
    assert {each["loc"][1] for each in found} == {"model", "gpu", "max_model_len"}


def test_what_is_missing_is_named(client: StrictClient) -> None:
    """Model and card are the two inputs nobody can do without."""
    found = details(client, "")
    assert [(each["loc"], each["code"]) for each in found] == [
        (["query", "model"], "missing"),
        (["query", "gpu"], "missing"),
    ]


def test_messages_follow_the_language(client: StrictClient) -> None:
    """German programs' people read German."""
    query = urlencode({**BASE, "max_model_len": "0"})
    german = client.get(f"/api/v1/sizing?{query}", headers={"Accept-Language": "de"})
    english = client.get(f"/api/v1/sizing?{query}")
    assert german.json()["detail"][0]["msg"] != english.json()["detail"][0]["msg"]
    assert "100.000.000" in german.json()["detail"][0]["msg"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "not_json"),
        (b"model=x", "not_json"),
        (b"\xff\xfe\x00", "not_json"),
        (b'{"model": "\\ud800"}', "not_json"),
        (b"[" * 50_000, "not_json"),
        (b'{"max_model_len": ' + b"9" * 5000 + b"}", "not_json"),
        (b"[]", "body_not_an_object"),
        (b"null", "body_not_an_object"),
        (b"3", "body_not_an_object"),
    ],
)
def test_a_body_that_is_no_object_is_refused(client: StrictClient, body: bytes, code: str) -> None:
    """Broken JSON, half a character, bottomless nesting and lists are told apart from inputs."""
    response = client.post("/api/v1/sizing", content=body)
    assert response.status_code == 422
    assert [each["code"] for each in response.json()["detail"]] == [code]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"max_model_len": 32.768}, "not_an_integer"),
        ({"max_model_len": True}, "not_an_integer"),
        ({"max_model_len": [8192]}, "not_an_integer"),
        ({"max_model_len": {"a": 1}}, "not_an_integer"),
        ({"max_model_len": 10**30}, "out_of_bounds"),
        ({"max_model_len": 1e300}, "not_an_integer"),
        ({"gpu_memory_utilization": float("nan")}, "not_a_number"),
        ({"gpu_memory_utilization": float("inf")}, "not_a_number"),
        ({"gpu_memory_utilization": -1}, "out_of_bounds"),
        ({"enforce_eager": 2}, "not_a_flag"),
        ({"speculative_config": [1]}, "not_an_object"),
        ({"speculative_config": {"method": {}}}, "object_value"),
        ({"model": ["x"]}, "unknown_model"),
        ({"model": "a\x00b"}, "unprintable_character"),
    ],
)
def test_wrong_types_are_refused(client: StrictClient, changes: dict[str, Any], code: str) -> None:
    """A JSON number is a number: 32.768 is no grouped integer here, NaN no number at all."""
    response = client.post("/api/v1/sizing", content=json.dumps({**BASE, **changes}))
    assert response.status_code == 422, response.text
    assert [each["code"] for each in response.json()["detail"]] == [code]


def test_a_body_that_is_too_large_is_refused(client: StrictClient) -> None:
    """More than 1 MiB is a 413 in JSON."""
    response = client.post("/api/v1/sizing", content=b" " * (1024 * 1024 + 1))
    assert response.status_code == 413
    assert response.json()["detail"][0]["code"]


def test_the_content_type_does_not_matter(client: StrictClient) -> None:
    """What curl sends without a header is read all the same: it is JSON."""
    response = client.post(
        "/api/v1/sizing",
        content=json.dumps(BASE),
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert response.status_code == 200


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architectures": ["NobodyKnowsForCausalLM"], "model_type": "nobody"},
        {"architectures": [5], "hidden_size": "large"},
        {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": -1},
        {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 10**12},
        {"text_config": []},
    ],
)
def test_a_pasted_config_that_is_none_never_fails(
    client: StrictClient, config: dict[str, Any]
) -> None:
    """A config that cannot be read is named as an entry, an unknown architecture as a reason."""
    body = {"hf_config": config, "gpu": "h200-nvl"}
    response = client.post("/api/v1/sizing", json=body)
    answer = response.json()
    if response.status_code == 200:
        assert answer["reason"]["code"] in {"architecture_unknown", "quantization_not_supported"}
    else:
        assert response.status_code == 422
        assert answer["detail"][0]["loc"] == ["body", "hf_config"]


TEXTS = st.one_of(
    st.sampled_from(["", "auto", "-1", "0", "1", "8k", "true", "{}", "fp8", "unsure", "nvfp4"]),
    st.integers(-5, 10**13).map(str),
    st.floats().map(str),
    st.text(max_size=12),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(BY_NAME)), TEXTS, max_size=5))
def test_no_query_fails(client: StrictClient, changes: dict[str, str]) -> None:
    """Any texts for any inputs give an answer or a list of problems."""
    response = client.get(f"/api/v1/sizing?{urlencode({**BASE, **changes}, errors='replace')}")
    assert response.status_code in {200, 422}, response.text


FLAGS: dict[str, list[str]] = {
    "tensor_parallel_size": ["1", "2", "3", "8", "1024"],
    "pipeline_parallel_size": ["2", "3", "100"],
    "data_parallel_size": ["8"],
    "decode_context_parallel_size": ["2", "8"],
    "enable_expert_parallel": ["true"],
    "replicas": ["2", "1000"],
    "max_model_len": ["1", "8192", "131072", "100000000", "auto"],
    "kv_cache_dtype": ["fp8", "nvfp4", "bfloat16", "fp8_ds_mla", "turboquant_k8v4"],
    "block_size": ["1", "16", "64", "1048576"],
    "gpu_memory_utilization": ["0.01", "0.92", "1"],
    "kv_cache_memory_bytes": ["1", "10g"],
    "num_gpu_blocks_override": ["1", "1000000000"],
    "max_num_batched_tokens": ["1", "2048", "100000000"],
    "max_num_seqs": ["1", "1000000"],
    "enforce_eager": ["true"],
    "enable_prefix_caching": ["true", "false"],
    "disable_hybrid_kv_cache_manager": ["true"],
    "mamba_cache_mode": ["none", "align", "all"],
    "mamba_ssm_cache_dtype": ["float32"],
    "speculative_config": ['{"method": "mtp", "num_speculative_tokens": 3}'],
    "dtype": ["float16", "float32"],
    "cpu_offload_gb": ["20", "1000000"],
    "max_cudagraph_capture_size": ["0", "1000000"],
    "limit_mm_per_prompt": ['{"image": 0}', '{"image": 1000000}'],
    "language_model_only": ["true"],
    "enable_lora": ["true"],
    "max_loras": ["100000"],
    "available_kv_cache_memory_bytes": ["1", "100g"],
    "measured_weights_gib": ["0", "50"],
    "gpu_total_memory_bytes": ["1", "100g"],
    "other_processes_gib": ["0.5", "40", "1048576"],
    "vllm_version": ["0.8.5", "0.10.2", "0.19.1", "0.28.0", "0.33.0"],
    "mean_request_tokens": ["1", "100000000"],
}


@pytest.mark.slow
@pytest.mark.timeout(900)  # the deep profile sizes 2,000 times, most of them for the first time
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_model_card_and_flags_fail(client: StrictClient, data: st.DataObject) -> None:
    """Any model of the catalogue on any card with any flags is answered, and has a way out."""
    catalogue: Catalogue = client.app.state.catalogue  # type: ignore[attr-defined]
    flags = data.draw(st.sets(st.sampled_from(sorted(FLAGS)), max_size=6))
    query = {
        "model": data.draw(st.sampled_from(sorted(catalogue.models))),
        "gpu": data.draw(st.sampled_from(sorted([*catalogue.gpus, *catalogue.slices]))),
        **{name: data.draw(st.sampled_from(FLAGS[name])) for name in sorted(flags)},
    }
    response = client.get(f"/api/v1/sizing?{urlencode(query)}")
    assert response.status_code in {200, 422}, response.text
    reason = response.json().get("reason")
    assert not reason or reason["ways_out"] or reason["code"] == "architecture_unknown"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=60))
def test_no_bytes_in_a_query_fail(client: StrictClient, raw: bytes) -> None:
    """Bytes that are no text at all are refused like any other unknown name."""
    response = client.get(f"/api/v1/sizing?{quote(raw)}")
    assert response.status_code in {200, 422}
