"""Whole start logs of every release, in every wrapping that people paste."""

from dataclasses import asdict

import pytest

from app.readings.log_text import split_lines
from app.readings.observation import LogReading, Observation
from app.readings.start_log import read_start_log
from tests.readings.logs import StartLog, start_log
from tests.readings.releases import RELEASES, number
from tests.readings.servers import SERVERS
from tests.readings.wrappers import WRAPPERS

_OF_THE_START = {"vllm_version", "model", "tensor_parallel_size"}
_NOT_OBSERVED = {"device", "difference_gib", "difference_percent", "compilation_seconds"}


def _check(reading: LogReading, log: StartLog, wrapper: str) -> Observation:
    assert len(reading.starts) == 1, wrapper
    start = reading.starts[0]
    found = asdict(start.observed)
    for name, value in log.expected.items():
        if name in _NOT_OBSERVED:
            continue
        read = getattr(start, name) if name in _OF_THE_START else found[name]
        assert read == pytest.approx(value), (wrapper, log.server.name, name)
    assert start.failure is None
    return start


@pytest.mark.parametrize("version", RELEASES)
def test_whole_logs_are_read(version: str) -> None:
    """At least 40 logs of the release, each with every figure that was printed, and no other."""
    logs = [
        start_log(version, server, debug=debug) for server in SERVERS for debug in (False, True)
    ]
    pastes = [(log, "plain") for log in logs]
    # Every wrapping twice; around which logs changes by release.
    shift = RELEASES.index(version)
    for first in (0, 4):
        pastes += [(logs[(first + shift) % len(logs)], name) for name in WRAPPERS]
    for log, name in pastes:
        _check(read_start_log(WRAPPERS[name](log.text)), log, name)
    assert len(pastes) >= 40


@pytest.mark.parametrize("version", RELEASES)
def test_the_engine_and_arguments_are_told(version: str) -> None:
    """V0 and V1 are told apart, and what a person set from what vLLM resolved."""
    log = start_log(version, SERVERS[2])
    start = _check(read_start_log(log.text), log, "plain")
    assert start.engine == ("V0" if number(version) < (0, 8) else "V1")
    assert start.arguments_shown
    assert start.engine_args["gpu_memory_utilization"] == 0.85
    assert start.engine_args["dtype"] == "bfloat16"
    assert start.engine_args["max_cudagraph_capture_size"] == 512
    if number(version) >= (0, 9):
        assert start.explicit_args == {
            "model", "max_model_len", "tensor_parallel_size", "gpu_memory_utilization",
        }  # fmt: skip
    if number(version) >= (0, 29):
        assert start.v2_model_runner is True


@pytest.mark.parametrize("version", RELEASES)
def test_ranks_are_combined_as_vllm_does(version: str) -> None:
    """The tightest rank decides, and every rank's own figure stays visible."""
    log = start_log(version, SERVERS[2], debug=True)
    observed = read_start_log(log.text).starts[0].observed
    assert len(observed.per_rank["weights_gib"]) == 4
    for name, combine in (("available_kv_cache_gib", min), ("consumed_gib", max)):
        ranks = observed.per_rank.get(name)
        if ranks:
            assert getattr(observed, name) == combine(ranks.values())
            assert len(set(ranks.values())) == 2


def test_line_numbers_are_those_of_the_paste() -> None:
    """Each recognised line stands where a text field would show it."""
    for name, wrapped in WRAPPERS.items():
        text = wrapped(start_log("0.32.0", SERVERS[1]).text)
        lines = split_lines(text)
        for read in read_start_log(text).lines:
            if read.kind != "kv_cache_size_and_concurrency":
                continue
            passage = "".join(lines[read.line - 1 : read.last_line]).replace("\u00a0", " ")
            assert "KV" in passage, name
            assert "tokens" in passage, name
            assert "Graph capturing" not in passage, name


@pytest.mark.parametrize("version", RELEASES)
def test_a_log_without_its_beginning_is_read(version: str) -> None:
    """From the weights on, the figures are the same and the wording still tells the release."""
    log = start_log(version, SERVERS[0])
    lines = log.text.split("\n")
    first = next(index for index, line in enumerate(lines) if "took" in line)
    reading = read_start_log("\n".join(lines[first:]))
    (start,) = reading.starts
    assert start.vllm_version is None
    at_least, at_most = start.vllm_version_at_least, start.vllm_version_at_most
    assert at_least is None or number(at_least) <= number(version)
    assert at_most is None or number(version) <= number(at_most)
    assert start.observed.weights_gib == pytest.approx(log.expected["weights_gib"])
    assert start.observed.max_concurrency == pytest.approx(log.expected["max_concurrency"])
