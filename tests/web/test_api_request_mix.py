"""The request mix for programs: the same figures as the need page shows."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.readings.metrics import page
from tests.strict_client import StrictClient

SERVER = {
    "model": "llama-3.1-8b",
    "checkpoint": "bf16",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "16384",
}


def asked(client: StrictClient, status: int = 200, **more: str) -> dict[str, Any]:
    """Ask for a mix."""
    response = client.get(f"/api/v1/request-mix?{urlencode({**SERVER, **more})}")
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def test_what_a_metrics_page_returns_can_be_asked_with(client: StrictClient) -> None:
    """The histogram of one answer is an input of the other."""
    lengths = client.post("/api/v1/metrics", content=page()).json()["request_lengths"]
    given = {name: str(lengths[name]) for name in ("length_histogram", "answer_percent")}
    found = asked(client, 200, **given)
    assert found["reason"] is None
    mix = found["mix"]
    assert 0 < mix["rarely"] < mix["sometimes"] < mix["often"]
    assert mix["requests"] == min(mix["rarely"], mix["batch_limit"])
    assert mix["accepted"] == 1
    assert mix["sufficient_max_model_len"] == 6144


def test_shorter_requests_let_more_of_them_run(client: StrictClient) -> None:
    """A mean of 1,000 tokens lets twice as many run as one of 2,000; counted lengths come first."""
    short, long = (
        asked(client, mean_request_tokens=mean)["mix"]["rarely"] for mean in ("1000", "2000")
    )
    assert short == pytest.approx(2 * long, rel=0.03)
    counted = asked(client, mean_request_tokens="2000", length_histogram="999:0,1000:7")
    assert counted["mix"]["rarely"] == short


def test_a_start_that_vllm_refuses_has_a_reason_and_no_mix(client: StrictClient) -> None:
    """A context beyond the model's is an answer with its reason."""
    found = asked(client, mean_request_tokens="1000", max_model_len="9000000")
    assert found["mix"] is None
    assert found["reason"]["code"] == "context_too_long"


@pytest.mark.parametrize(
    ("given", "field", "code"),
    [
        ({}, "length_histogram", "missing"),
        ({"length_histogram": "5:1,4:1"}, "length_histogram", "histogram_order"),
        ({"length_histogram": "5:1", "answer_percent": "120"}, "answer_percent", "out_of_bounds"),
        ({"length_histogram": "5:1", "preset": "rag"}, "preset", "unknown_name"),
    ],
)
def test_wrong_entries_are_named(
    client: StrictClient, given: dict[str, str], field: str, code: str
) -> None:
    """422, with the field and the code; nothing is guessed."""
    (detail,) = asked(client, 422, **given)["detail"]
    assert (detail["loc"], detail["code"]) == (["query", field], code)
