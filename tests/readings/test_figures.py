"""What follows from the printed figures, and the quirks of single releases."""

import pytest

from app.readings.observation import Observation
from app.readings.start_log import read_start_log
from tests.readings.line_table import row_for
from tests.readings.logs import start_log
from tests.readings.servers import SERVERS

SERVER = SERVERS[0]


def _start(*lines: str) -> Observation:
    (start,) = read_start_log("\n".join(lines)).starts
    return start


def test_the_sampled_capture_of_the_v2_runner_is_not_the_graphs_memory() -> None:
    """Of two capture lines of one process the last one counts."""
    row = row_for("graph_capture", "0.32.0")
    tag = "(EngineCore pid=7) INFO 06-14 09:41:00 [model_runner.py:1164] "
    start = _start(tag + row.printed(cudagraph_gib=0.08), tag + row.printed(cudagraph_gib=0.42))
    assert start.observed.cudagraph_gib == 0.42
    assert start.observed.per_rank == {}


@pytest.mark.parametrize("version", ["0.18.1", "0.27.1", "0.28.0", "0.33.0"])
def test_activation_and_graph_estimate_are_taken_apart(version: str) -> None:
    """Where vLLM prints their sum as peak activation, both come out alone."""
    start = _start(start_log(version, SERVER, debug=True).text)
    observed = start.observed
    assert observed.peak_activation_printed_gib == round(
        SERVER.activation_gib + SERVER.estimate_gib, 2
    )
    assert observed.peak_activation_gib == SERVER.activation_gib
    assert observed.cudagraph_estimate_gib == SERVER.estimate_gib


@pytest.mark.parametrize("version", ["0.10.2", "0.17.1", "0.19.1", "0.26.0"])
def test_activation_is_taken_as_printed_where_it_stands_alone(version: str) -> None:
    """The other releases print the activation without the estimate."""
    observed = _start(start_log(version, SERVER, debug=True).text).observed
    assert observed.peak_activation_printed_gib is None
    assert observed.peak_activation_gib == SERVER.activation_gib


def test_an_estimate_that_is_not_told_leaves_the_sum_alone() -> None:
    """Without an estimate anywhere the sum cannot be taken apart, so no activation is claimed."""
    observed = _start(row_for("memory_summary", "0.32.0").printed()).observed
    assert observed.peak_activation_gib is None
    assert observed.peak_activation_printed_gib == 2.02


def test_eager_mode_has_no_estimate() -> None:
    """With --enforce-eager the sum is the activation."""
    observed = _start(
        "non-default args: {'model': 'm', 'enforce_eager': True}",
        row_for("memory_summary", "0.32.0").printed(),
    ).observed
    assert observed.peak_activation_gib == 2.02


def test_the_estimate_follows_from_the_equivalent_utilization() -> None:
    """The V2 runner prints no estimate; utilization with and without it tells it."""
    observed = _start(
        row_for("memory_summary", "0.32.0").printed(total_memory_gib=94.97),
        row_for("cudagraph_profiling_enabled", "0.32.0").printed(),
    ).observed
    assert observed.cudagraph_estimate_gib == pytest.approx((0.92 - 0.9075) * 94.97, abs=0.01)


def test_headroom_is_what_the_profile_adds_to_the_consumed_memory() -> None:
    """From 0.27.1 the debug line's total minus consumed is the transient peak."""
    observed = _start(row_for("memory_profile", "0.32.0", "8").printed()).observed
    assert observed.peak_activation_gib == pytest.approx(69.4 - 68.1)
    assert observed.consumed_gib == 68.1


def test_the_card_follows_from_the_requested_memory() -> None:
    """Requested memory over utilization is the total where no line prints it."""
    observed = _start(row_for("initial_free_memory", "0.32.0").printed()).observed
    assert observed.total_memory_gib == pytest.approx(86.9 / 0.915, abs=0.01)


def test_an_override_counts_as_the_number_of_blocks() -> None:
    """With --num-gpu-blocks-override the measured number is only what was overridden."""
    observed = _start(row_for("num_gpu_blocks_override", "0.32.0").printed()).observed
    assert (observed.num_gpu_blocks, observed.num_gpu_blocks_override) == (512, 512)


def test_a_startup_plan_is_a_reservation() -> None:
    """Bytes from a persisted plan stand where --kv-cache-memory-bytes would."""
    observed = _start(row_for("startup_plan", "0.32.0").printed()).observed
    assert observed.reserved_kv_cache_gib == 16.05
    assert observed.available_kv_cache_gib is None


def test_a_fitted_length_is_the_one_that_counts() -> None:
    """Auto-fit has the last word on the context length; what was asked for stays visible."""
    start = _start(
        "non-default args: {'model': 'm', 'max_model_len': -1}",
        row_for("max_model_len", "0.32.0").printed(max_model_len=131_072),
        "Auto-fit max_model_len: reduced from 131072 to 54320 to fit in available KV cache memory "
        "(8.29 GiB GPU)",
    )
    assert start.observed.max_model_len == 54_320
    assert start.observed.available_kv_cache_gib == 8.29
    assert start.engine_args["max_model_len"] == -1


def test_a_draft_models_length_is_not_the_targets() -> None:
    """vLLM announces the target's length first, then the draft's."""
    row = row_for("max_model_len", "0.32.0")
    observed = _start(row.printed(max_model_len=40_960), row.printed(max_model_len=2_048)).observed
    assert observed.max_model_len == 40_960


def test_statistics_lines_add_up() -> None:
    """Peaks over all lines; preemptions are counted anew in each."""
    row = row_for("statistics", "0.32.0")
    quiet = row.printed(num_requests_running=2, num_requests_waiting=0, kv_cache_usage_percent=9.5)
    busy = (
        "Running: 61 reqs, Waiting: 9 reqs, Preemptions: 4, GPU KV cache usage: 99.8%, "
        "Prefix cache hit rate: 1.0%"
    )
    observed = _start(quiet, busy, busy).observed
    assert observed.peak_num_requests_running == 61
    assert observed.peak_num_requests_waiting == 9
    assert observed.peak_kv_cache_usage_percent == 99.8
    assert observed.num_preemptions == 8
    assert observed.per_rank == {}


def test_v0_counts_preemptions_itself() -> None:
    """V0 prints a running total, and only for some of them."""
    row = row_for("preemption", "0.10.2")
    observed = _start(
        row.printed(cumulative_preemptions=1), row.printed(cumulative_preemptions=51)
    ).observed
    assert observed.num_preemptions == 51


def test_a_source_build_without_a_release_tells_none() -> None:
    """`0.1.dev…` names no release; the wording of the lines bounds it instead."""
    start = _start(
        "vLLM API server version 0.1.dev4711+gabcdef",
        row_for("kv_cache_size_and_concurrency", "0.32.0").printed(),
    )
    assert start.vllm_version is None
    assert start.vllm_version_at_least == "0.28.0"
    assert start.vllm_version_at_most is None


def test_wordings_of_no_single_release_tell_nothing() -> None:
    """A fork, or several logs mixed, may use words that no release uses together."""
    start = _start(
        row_for("kv_cache_size_and_concurrency", "0.32.0").printed(),
        row_for("v0_memory_profile", "0.7.3").printed(),
    )
    assert (start.vllm_version_at_least, start.vllm_version_at_most) == (None, None)


def test_a_cached_path_names_the_model() -> None:
    """The Hugging Face cache folder is read as the id it stands for."""
    start = _start(
        "non-default args: {'model': '/root/.cache/huggingface/hub/models--our-org--our-8B-FP8/"
        "snapshots/0123abcd'}"
    )
    assert start.model == "our-org/our-8B-FP8"


def test_cards_are_named_in_order_without_repeats() -> None:
    """Names from nvidia-smi, environment reports and kernel configurations."""
    row = row_for("gpu_name", "0.32.0")
    start = _start(
        row.printed(), row.printed(), "GPU 0: NVIDIA L40S (UUID: GPU-1)",
        "|   0  NVIDIA RTX PRO 6000 Blac...  On  | 00000000:01:00.0 Off |",
    )  # fmt: skip
    assert start.gpu_names == ("NVIDIA H200", "NVIDIA L40S", "NVIDIA RTX PRO 6000 Blac")
