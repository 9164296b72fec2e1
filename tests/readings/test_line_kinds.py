"""Every kind of line, in the words of every release that prints it."""

import pytest

from app.readings.log_lines import LINE_KINDS
from app.readings.observation import ReadLine
from app.readings.start_log import read_start_log
from tests.readings.failure_rows import FAILURES
from tests.readings.line_row import Row
from tests.readings.line_table import LINE_TABLE
from tests.readings.releases import RELEASES, engine_tag, record, within

# Texts that carry what the table's placeholders do not name.
_UNNAMED = {"unit", "free_unit", "possessive", "device", "word"}
CATALOGUE_ROWS = {*(str(row) for row in range(1, 38)), *(f"E{row}" for row in range(1, 10))}
ROWS = [
    pytest.param(row, id=f"{index}-{row.row}-{row.kind}") for index, row in enumerate(LINE_TABLE)
]
# Figures that end their line or stand before punctuation: cut there, less is read as less.
_OPEN_ENDED = {
    "max_model_len", "max_num_batched_tokens", "num_gpu_blocks", "num_cpu_blocks",
    "num_gpu_blocks_override", "cumulative_preemptions", "reserved_kv_cache_bytes",
    "context_parallel_factor", "kv_cache_block_size", "suggested_gpu_memory_utilization",
    "num_preemptions", "current_free_bytes", "detail", "architecture", "platform", "gpu_name",
    "vllm_version", "model",
}  # fmt: skip


def _read(text: str) -> list[ReadLine]:
    return list(read_start_log(text).lines)


@pytest.mark.parametrize("row", ROWS)
def test_a_line_is_read_in_every_release(row: Row) -> None:
    """The kind and each number come back, as precise as each release prints them."""
    expected = {name: value for name, value in row.expected().items() if name not in _UNNAMED}
    for version in row.releases or ("0.6.6",):
        text = record(version, engine_tag(version), row.file, 117, row.printed(), row.level)
        if row in FAILURES:
            tag = engine_tag(version)
            text = f"{tag}ERROR 06-14 09:41:57 [core.py:388] ValueError: {row.printed()}"
        (line,) = _read(text)
        assert line.kind == row.kind, version
        read = {name: value for name, value in line.values.items() if name not in _UNNAMED}
        assert read == pytest.approx(expected), version
        assert line.line == line.last_line == 1


@pytest.mark.parametrize("row", ROWS)
def test_a_cut_line_gives_no_wrong_figure(row: Row) -> None:
    """A line that was cut anywhere gives the printed figures or none."""
    whole = {name for name in row.expected() if name not in _UNNAMED | _OPEN_ENDED}
    for cut in range(len(row.printed())):
        for line in _read(row.printed()[:cut]):
            for name in whole & line.values.keys():
                assert line.values[name] == pytest.approx(row.expected()[name]), row.printed()[:cut]


def test_the_table_has_every_row_of_the_catalogue() -> None:
    """Rows 1 to 37 and E1 to E9 are there, with at least one release each."""
    rows = {row.row.rstrip("abcd") for row in LINE_TABLE if row.releases}
    # Row 33 also names the argument listings, which have tests of their own.
    assert rows >= CATALOGUE_ROWS


def test_every_wording_is_in_the_table() -> None:
    """No wording of the reader is without a line that it reads."""
    unread = [
        (kind.kind, form.pattern.pattern)
        for kind in LINE_KINDS
        for form in kind.forms
        if not any(
            row.kind == kind.kind and form.pattern.search(row.printed()) for row in LINE_TABLE
        )
    ]
    # "Killed" counts only where it stands alone, and has a test of its own.
    assert [kind for kind, _ in unread] == ["killed"]


@pytest.mark.parametrize("version", RELEASES)
def test_the_wording_tells_the_release(version: str) -> None:
    """Without a version in the text, the lines of a release allow that release."""
    for row in LINE_TABLE:
        if row.kind == "vllm_version" or not within(version, row.since, row.until):
            continue
        (start,) = read_start_log(row.printed()).starts
        assert within(version, start.vllm_version_at_least, start.vllm_version_at_most), row
