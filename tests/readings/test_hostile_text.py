"""Hostile and huge texts: no exception, time that grows with the length only."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.readings.command_block import COMMAND_HEADS
from app.readings.events import MAX_EVENTS
from app.readings.log_lines import LINE_HEADS
from app.readings.log_text import decode, split_lines
from app.readings.metrics_page import read_metrics_page
from app.readings.observation import LogReading
from app.readings.start_log import read_start_log
from app.readings.stated_arguments import ARGUMENT_HEADS
from tests.cpu_time import cpu_seconds
from tests.readings.line_table import LINE_TABLE, row_for
from tests.readings.logs import start_log
from tests.readings.servers import SERVERS
from tests.readings.wrappers import WRAPPERS

_HEADS = (*LINE_HEADS, *ARGUMENT_HEADS, *COMMAND_HEADS)
_MARKS = (
    "\x00", "\r", "\r\n", "\x1b[", "\x1b[0m", "\x1b]8;;", "\u202e", "\u2066", "\ud83d\ude80",
    "\ufeff", "<script>alert(1)</script>", "&lt;b&gt;", "{{7*7}}", "'", '"', "\\", "`", "(",
    "[" * 30, "{" * 30, "9" * 40, "-", "1e999", "NaN", "(Worker_TP0 pid=1) ",
    "INFO 01-01 00:00:00 [a.py:1] ", "svc-1  | ", "---", "\n\n",
)  # fmt: skip
_SAMPLES = tuple(row.printed() for row in LINE_TABLE)


def _half(text: str) -> st.SearchStrategy[str]:
    return st.integers(0, len(text)).map(lambda cut: text[:cut])


_fragments = st.one_of(
    st.sampled_from(_HEADS),
    st.sampled_from(_MARKS),
    st.sampled_from(_SAMPLES),
    st.sampled_from(_SAMPLES).flatmap(_half),
    st.text(max_size=30),
)
_texts = st.one_of(
    st.lists(_fragments, max_size=25).map("".join),
    st.lists(_fragments, max_size=25).map("\n".join),
    st.tuples(_fragments, st.integers(1, 40)).map(lambda pair: pair[0] * pair[1]),
    st.sampled_from(list(WRAPPERS.values())).flatmap(
        lambda wrapped: _half(wrapped(start_log("0.32.0", SERVERS[0]).text))
    ),
)


def _check(reading: LogReading, text: str) -> None:
    lines = len(split_lines(text))
    for line in reading.lines:
        assert 1 <= line.line <= line.last_line <= lines
        assert line.start is None or 0 <= line.start < len(reading.starts)
    assert [line.line for line in reading.lines] == sorted(line.line for line in reading.lines)
    for start in reading.starts:
        assert 1 <= start.first_line <= start.last_line <= lines


@settings(max_examples=300)
@given(_texts)
def test_no_text_is_refused(text: str) -> None:
    """Any text gives a reading whose lines lie inside it."""
    _check(read_start_log(text), text)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@settings(max_examples=10_000)
@given(_texts)
def test_no_text_is_refused_in_the_long_run(text: str) -> None:
    """The same for ten thousand texts."""
    _check(read_start_log(text), text)


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_no_bytes_are_refused(data: bytes) -> None:
    """Any bytes decode to a text that can be read."""
    text = decode(data)
    _check(read_start_log(text), text)


@settings(max_examples=100)
@given(st.lists(st.one_of(_fragments, st.just("vllm:num_requests_running{"))).map("\n".join))
def test_no_page_is_refused(text: str) -> None:
    """Any text below the limit gives a metrics reading."""
    read_metrics_page(text)


def test_a_line_of_a_megabyte_is_one_line() -> None:
    """A figure in the middle of an endless line is found, and its line number is right."""
    filler = "x" * 500_000
    (line,) = read_start_log(
        f"first\n{filler} Model loading took 15.0 GiB memory and 5.0 seconds {filler}\nlast"
    ).lines
    assert (line.line, line.values["weights_gib"]) == (2, 15.0)


@pytest.mark.slow
def test_more_lines_than_any_log_has_are_not_read() -> None:
    """Recognition stops at a bound far above a real log's, and the reading says so."""
    reading = read_start_log("Killed\n" * (MAX_EVENTS + 5))
    assert len(reading.lines) == MAX_EVENTS
    assert not reading.complete
    assert read_start_log("Killed\n").complete


def _grows_linearly(read: Callable[[str], object], unit: str, length: int) -> bool:
    """Whether ten times the text take at most eleven times as long; 50 ms are within the noise.

    A busy machine can only make a reading slower, so the best of a few comparisons counts.
    """
    short = (unit * (length // len(unit) + 1))[:length]
    return any(
        cpu_seconds(lambda: read(short * 10)) <= 11 * cpu_seconds(lambda: read(short)) + 0.05
        for _ in range(4)
    )


def _long_log(length: int) -> str:
    """A start, then hours of statistics, requests, progress bars and a few tracebacks."""
    start = start_log("0.32.0", SERVERS[2]).text
    statistics = row_for("statistics", "0.32.0").printed()
    running = (
        f"(APIServer pid=1) INFO 06-14 09:50:00 [loggers.py:273] {statistics}",
        '(APIServer pid=1) INFO:     10.0.0.7:40122 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:04<00:04,  2.1s/it]",
        '(EngineCore pid=9)   File "/usr/lib/python3/dist-packages/vllm/our/core.py", line 388',
    )
    lines = [start]
    size = len(start)
    while size < length:
        line = running[len(lines) % len(running)]
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)[:length]


@pytest.mark.slow
def test_five_megabytes_take_less_than_a_second() -> None:
    """5 MB of a server's log are read in under one second of CPU."""
    text = _long_log(5_000_000)
    assert cpu_seconds(lambda: read_start_log(text)) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(_long_log(50_000), id="a long log"),
        pytest.param(start_log("0.32.0", SERVERS[0]).text + "\n", id="starts without end"),
        pytest.param("Free memory on device (1/2 GiB) on\n", id="broken lines"),
        pytest.param("non-default args: {'a': [1, \n", id="open listings"),
        pytest.param("- vllm serve 'x \\\n", id="open commands"),
        pytest.param("vllm-openai: ", id="one line"),
        pytest.param("Killed\n", id="failures"),
        pytest.param("(Worker pid=(\x1b[\r", id="open marks"),
    ],
)
def test_time_grows_with_the_length(unit: str) -> None:
    """Ten times the text take at most eleven times as long, measured in one run."""
    assert _grows_linearly(read_start_log, unit, 40_000)


@pytest.mark.slow
def test_a_slow_reader_would_be_found_out() -> None:
    """Reading the text once for every line of it does not pass for linear."""

    def slow(text: str) -> int:
        return sum(text.count(line) for line in text.split("\n"))

    assert not _grows_linearly(slow, "Model loading took 15 GiB\n", 10_000)
