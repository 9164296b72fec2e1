"""Pastes with several starts, several services, several engines."""

import pytest

from app.readings.start_log import MAX_STARTS, read_start_log
from tests.readings.line_table import row_for
from tests.readings.logs import start_log
from tests.readings.releases import RELEASES, record
from tests.readings.servers import SERVERS
from tests.readings.wrappers import WRAPPERS

SMALL, PAIR = SERVERS[0], SERVERS[1]


@pytest.mark.parametrize("version", RELEASES)
def test_starts_below_each_other_are_told_apart(version: str) -> None:
    """Two logs in one paste give two starts, each with its own figures and lines."""
    logs = [start_log(version, SMALL), start_log(version, PAIR), start_log(version, SMALL)]
    reading = read_start_log("\n".join(log.text for log in logs))
    assert [start.model for start in reading.starts] == [log.server.model for log in logs]
    for start, log in zip(reading.starts, logs, strict=True):
        assert start.observed.max_concurrency == pytest.approx(log.expected["max_concurrency"])
    for line in reading.lines:
        assert line.start is not None
        start = reading.starts[line.start]
        assert start.first_line <= line.line <= start.last_line


@pytest.mark.parametrize("version", ["0.7.3", "0.8.5", "0.10.2", "0.32.0"])
def test_starts_without_their_beginnings_are_told_apart(version: str) -> None:
    """Weights that load again after a cache was sized begin another start."""
    logs = []
    for server in (SMALL, PAIR):
        lines = start_log(version, server).text.split("\n")
        first = next(index for index, line in enumerate(lines) if "loading" in line.lower())
        logs.append("\n".join(lines[first:]))
    starts = read_start_log("\n".join(logs)).starts
    assert [start.observed.max_concurrency_len for start in starts] == [
        SMALL.max_model_len, PAIR.max_model_len,
    ]  # fmt: skip


def test_cache_lines_alone_are_told_apart_by_their_length() -> None:
    """Two pairs of lines for different lengths are two starts, also with nothing else pasted."""
    lines = [
        row_for(kind, "0.26.0").printed(**values)
        for length, tokens in ((32_768, 215_040), (8_192, 99_328))
        for kind, values in (
            ("kv_cache_size", {"kv_cache_size_tokens": tokens}),
            ("max_concurrency", {"max_concurrency_len": length}),
        )
    ]
    starts = read_start_log("\n".join(lines)).starts
    assert [
        (start.observed.max_concurrency_len, start.observed.kv_cache_size_tokens)
        for start in starts
    ] == [(32_768, 215_040), (8_192, 99_328)]


def test_interleaved_services_are_told_apart() -> None:
    """Lines of two compose services that alternate give one start each, under its own name."""
    ours = start_log("0.32.0", SMALL).text.split("\n")
    theirs = start_log("0.28.0", PAIR).text.split("\n")
    lines = []
    for index in range(max(len(ours), len(theirs))):
        lines += [f"chat-1    | {line}" for line in ours[index : index + 1]]
        lines += [f"embed-1   | {line}" for line in theirs[index : index + 1]]
    starts = read_start_log("\n".join(lines)).starts
    assert [(start.service, start.model, start.vllm_version) for start in starts] == [
        ("chat-1", SMALL.model, "0.32.0"), ("embed-1", PAIR.model, "0.28.0"),
    ]  # fmt: skip


def test_lines_that_lost_the_mark_of_the_only_service_stay_with_it() -> None:
    """A traceback without the compose prefix belongs to the one service that has it."""
    text = WRAPPERS["compose"](start_log("0.32.0", SMALL).text)
    error = row_for("sampler_warmup_out_of_memory", "0.32.0").printed()
    (start,) = read_start_log(f"{text}\nRuntimeError: {error}").starts
    assert start.service == "our-vllm-1"
    assert start.failure is not None


def test_engines_of_one_deployment_are_one_start() -> None:
    """Data-parallel engines print the same lines; the smallest cache is the one to rely on."""
    lines = [
        record("0.17.1", "(APIServer pid=1) ", "api_server.py", 1, "vLLM API server version 0.17.1")
    ]
    for rank, tokens in ((0, 812_000), (1, 811_984)):
        tag = f"(EngineCore_DP{rank} pid={40 + rank}) "
        lines.append(
            record("0.17.1", tag, "core.py", 1, "Initializing a V1 LLM engine (v0.17.1) with "
                   "config: model='our-org/our-moe', data_parallel_size=2, max_seq_len=4096")
        )  # fmt: skip
        lines += [
            record("0.17.1", tag, "gpu.py", 1, row_for(kind, "0.17.1").printed())
            for kind in ("model_loading", "available_kv_cache_memory")
        ]
        size = row_for("kv_cache_size", "0.17.1").printed(kv_cache_size_tokens=tokens)
        lines.append(record("0.17.1", tag, "kv_cache_utils.py", 1, size))
    (start,) = read_start_log("\n".join(lines)).starts
    assert start.data_parallel_size == 2
    assert start.observed.kv_cache_size_tokens == 811_984
    assert start.observed.per_rank["kv_cache_size_tokens"] == {
        "EngineCore_DP0": 812_000, "EngineCore_DP1": 811_984,
    }  # fmt: skip


def test_a_late_api_server_begins_no_start() -> None:
    """Further API servers of one deployment announce themselves while its engine loads."""
    text = start_log("0.32.0", SMALL).text
    late = record("0.32.0", "(ApiServer_3 pid=9) ", "api_utils.py", 1,
                  "vLLM API server version 0.32.0")  # fmt: skip
    assert len(read_start_log(f"{text}\n{late}").starts) == 1


def test_sizes_follow_from_the_tags_where_nothing_states_them() -> None:
    """Ranks in the process tags give at least so many cards."""
    line = "Available KV cache memory: 20.0 GiB"
    (start,) = read_start_log(
        f"(Worker_PP1_TP3_EP7 pid=3) INFO 06-14 09:41:00 [gpu_worker.py:1] {line}"
    ).starts
    assert (start.pipeline_parallel_size, start.tensor_parallel_size) == (2, 4)
    assert start.enable_expert_parallel is True
    assert start.data_parallel_size is None


def test_of_an_endless_restart_the_last_starts_are_kept() -> None:
    """The newest starts are read, the older ones counted, and their lines stay recognised."""
    one = "vLLM API server version 0.32.0\nModel loading took 15.0 GiB memory and 5.0 seconds\n"
    reading = read_start_log(one * (MAX_STARTS + 7))
    assert len(reading.starts) == MAX_STARTS
    assert reading.starts_left_out == 7
    assert [line.start for line in reading.lines[:14]] == [None] * 14
    assert reading.lines[14].start == 0


def test_a_text_without_vllm_gives_nothing() -> None:
    """No recognised line, no start."""
    for text in ("", "\n", "hello\nworld", "Killed in action", "KV cache", "\x00"):
        assert read_start_log(text).starts == ()
        assert read_start_log(text).lines == ()
