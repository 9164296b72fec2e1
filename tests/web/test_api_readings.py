"""Pasted logs and metrics pages over the API: read, compared, and never a failure."""

import json
from urllib.parse import urlsplit

import pytest

from tests.readings.failed_starts import failed_start
from tests.readings.failure_rows import FAILURES
from tests.readings.line_row import Row
from tests.readings.logs import start_log
from tests.readings.metrics import page
from tests.readings.servers import SERVERS, Server
from tests.strict_client import StrictClient

LOG = "/api/v1/start-log"
METRICS = "/api/v1/metrics"
TEXT = {"content-type": "text/plain"}
LLAMA = Server("known", "meta-llama/Llama-3.1-8B-Instruct", 32, 8, 128, 14.99, 44.39, 43.9, 32_768)


def read(client: StrictClient, text: str | bytes) -> dict[str, object]:
    """The answer to a pasted log."""
    answer = client.post(LOG, content=text, headers=TEXT)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, object] = answer.json()
    return found


def known(client: StrictClient, version: str = "0.25.1") -> dict[str, object]:
    """The answer to a whole start of a model and a card that the catalogue knows."""
    text = start_log(version, LLAMA).text + "\nGPU 0: NVIDIA L40S\n"
    starts = read(client, text)["starts"]
    assert isinstance(starts, list)
    assert len(starts) == 1
    start: dict[str, object] = starts[0]
    return start


@pytest.mark.parametrize("version", ["0.9.2", "0.19.1", "0.25.1", "0.28.0", "0.33.0"])
def test_a_start_is_read_and_compared(client: StrictClient, version: str) -> None:
    """A start of a known server comes back with its release, its terms compared, and a link."""
    start = known(client, version)
    assert start["vllm_version"] == version
    assert start["model_slug"] == "llama-3.1-8b"
    assert start["gpu"] == "l40s"
    terms = {each["term"]: each for each in start["compared"]}  # type: ignore[attr-defined]
    assert terms["weights"]["printed"] == pytest.approx(14.99, abs=0.01)
    assert terms["kv_cache_size_tokens"]["likely_cause"] is None
    assert start["gaps"] == []


def test_the_link_starts_from_the_measurement(client: StrictClient) -> None:
    """The permalink, asked as a sizing, gives the printed tokens to the rounding of the log."""
    start = known(client)
    query = urlsplit(str(start["permalink"])).query
    assert "measured_weights_gib=14.99" in query
    # `v` and `data` belong to the page's link, not to the API
    pairs = [pair for pair in query.split("&") if not pair.startswith(("v=", "data="))]
    sizing = client.get(f"/api/v1/sizing?{'&'.join(pairs)}").json()
    printed = start["observed"]["kv_cache_size_tokens"]  # type: ignore[index]
    assert sizing["kv_cache_size_tokens"] == pytest.approx(printed, rel=1e-3)


def test_lines_carry_number_kind_and_values(client: StrictClient) -> None:
    """Recognised lines come with their number in the paste and the figures they print."""
    found = read(client, "nothing\nAvailable KV cache memory: 12.75 GiB\n")
    assert found["lines"] == [
        {"line": 2, "kind": "available_kv_cache_memory",
         "values": {"available_kv_cache_gib": 12.75}, "start": 0}
    ]  # fmt: skip


def test_findings_name_flag_and_effect(client: StrictClient) -> None:
    """A 16-bit cache is found, with the flag and twice the tokens as its effect."""
    findings = {each["code"]: each for each in known(client)["findings"]}  # type: ignore[attr-defined]
    found = findings["kv_cache_dtype_16_bit"]
    assert found["change"] == {"kv_cache_dtype": "fp8"}
    before, after = found["effect"]["kv_cache_size_tokens"]
    assert after == pytest.approx(2 * before, rel=0.01)


@pytest.mark.parametrize(
    "row", FAILURES, ids=[f"{place}-{row.kind}" for place, row in enumerate(FAILURES)]
)
def test_failures_of_a_known_server_are_read(client: StrictClient, row: Row) -> None:
    """Every failure text comes back with its code; what is offered instead was sized to fit."""
    if not row.releases:
        pytest.skip("no release prints this wording whole")
    text = failed_start(row.releases[-1], row, "profiling", LLAMA) + "\nGPU 0: NVIDIA L40S\n"
    starts = read(client, text)["starts"]
    assert isinstance(starts, list)
    failure = starts[0]["failure"]
    assert failure["code"] == row.kind
    assert starts[0]["findings"] == []
    assert all(way["requests"] >= 1 and way["change"] for way in failure["ways_out"])


@pytest.mark.parametrize(
    "text",
    [b"", b"\x00" * 1000, b"\xff\xfe\x00", "\u202e<script>alert(1)</script>".encode(),
     b"x" * 1_000_000, b"GPU KV cache size: 9999999999999 tokens\n" * 1000,
     b"Model loading took 99999999 GiB memory and 1 seconds\nAvailable KV cache memory: -9 GiB"],
    ids=["empty", "nul", "half_utf16", "bidi_html", "one_line", "repeated", "absurd"],
)  # fmt: skip
def test_no_text_fails(client: StrictClient, text: bytes) -> None:
    """Hostile text is an answer like any other, also where the numbers are absurd."""
    read(client, text)
    assert client.post(METRICS, content=text, headers=TEXT).status_code == 200


def test_absurd_figures_of_a_known_server(client: StrictClient) -> None:
    """Figures that no card can have are compared and found, without a failure."""
    lines = [
        "vLLM API server version 0.25.1",
        "non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 1,",
        " 'max_num_seqs': 999999999, 'tensor_parallel_size': 100000, 'block_size': 7}",
        "GPU 0: NVIDIA L40S",
        "Model loading took 900000.0 GiB memory and 1 seconds",
        "Available KV cache memory: -300000.5 GiB",
    ]
    starts = read(client, "\n".join(lines))["starts"]
    assert isinstance(starts, list)
    assert starts[0]["model_slug"] == "llama-3.1-8b"


def test_many_starts_are_read_in_time(client: StrictClient) -> None:
    """A server that restarts without end comes back whole, its last starts worked out."""
    text = (start_log("0.25.1", LLAMA).text + "\nGPU 0: NVIDIA L40S\n") * 40
    starts = read(client, text)["starts"]
    assert isinstance(starts, list)
    assert len(starts) == 40
    assert [bool(each["permalink"]) for each in starts] == [False] * 32 + [True] * 8


def test_too_much_is_refused(client: StrictClient) -> None:
    """More than 5 MB of log, or 1 MB of metrics, is refused with 413 and an explanation in JSON."""
    for path, size in ((LOG, 5 * 2**20), (METRICS, 2**20)):
        answer = client.post(path, content=b"x" * (size + 1), headers=TEXT)
        assert answer.status_code == 413
        assert answer.json()["detail"][0]["code"]


def test_a_metrics_page_is_judged(client: StrictClient) -> None:
    """A full cache with waiting requests is cache-bound, and the findings say so."""
    text = page(usage=0.97, running=12, waiting=9, preemptions=40)
    found = client.post(METRICS, content=text, headers=TEXT).json()
    assert found["verdict"]["code"] == "cache_bound"
    codes = {each["code"] for each in found["findings"]}
    assert {"preemptions", "waiting_for_cache"} <= codes
    engine = found["engines"][0]
    assert engine["kv_cache_size_tokens"] == 215_040
    assert engine["max_concurrency"] == 6.5625


def test_two_metrics_pages_tell_what_happened(client: StrictClient) -> None:
    """A second page behind a line of dashes gives what happened in between."""
    text = page(preemptions=3) + "---\n" + page(preemptions=10)
    found = client.post(METRICS, content=text, headers=TEXT).json()
    assert found["change"]["num_preemptions"] == 7


def test_unknown_models_keep_their_figures(client: StrictClient) -> None:
    """A model that the catalogue lacks is named as a gap; its figures are there all the same."""
    start = read(client, start_log("0.25.1", SERVERS[0]).text)["starts"]
    assert isinstance(start, list)
    assert start[0]["gaps"][0] == "model_unknown"
    assert start[0]["observed"]["kv_cache_size_tokens"] > 0
    assert start[0]["compared"] == []
    assert json.dumps(start)
