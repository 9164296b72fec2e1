"""Failed starts: the cause is named with its numbers, and what follows from it is not."""

import pytest

from app.core.reasons import ReasonCode
from app.readings.failures import FAILURE_CODES
from app.readings.start_log import read_start_log
from tests.readings.failed_starts import failed_start
from tests.readings.failure_rows import FAILURES
from tests.readings.line_row import Row
from tests.readings.line_table import row_for
from tests.readings.logs import start_log
from tests.readings.servers import SERVERS

_STAGE = {
    "context_too_long": "start", "heads_not_divisible": "start",
    "free_memory_below_request": "loading", "free_memory_below_engine_budget": "loading",
    "external_weights_exceed_budget": "loading", "weights_do_not_fit": "loading",
    "sampler_warmup_out_of_memory": "capture", "pooler_warmup_out_of_memory": "capture",
    "mamba_blocks_below_max_num_seqs": "capture", "out_of_memory": "capture",
    "cuda_error": "capture", "engine_core_failed": "capture",
}  # fmt: skip
CASES = [
    pytest.param(row, version, id=f"{index}-{row.kind}-{version}")
    for index, row in enumerate(FAILURES)
    for version in {row.releases[0], row.releases[-1]} if row.releases
]  # fmt: skip


@pytest.mark.parametrize(("row", "version"), CASES)
def test_a_failed_start_is_explained(row: Row, version: str) -> None:
    """Code, stage, line and numbers of the cause, from a whole log with its traceback."""
    stage = _STAGE.get(row.kind, "profiling")
    text = failed_start(version, row, stage)
    (start,) = read_start_log(text).starts
    failure = start.failure
    assert failure is not None
    assert failure.code == row.kind
    assert failure.stage == stage
    assert row.printed()[:40] in text.split("\n")[failure.line - 1]
    for name, value in row.expected().items():
        if name in failure.numbers:
            assert failure.numbers[name] == pytest.approx(value)
    assert not {"unit", "possessive", "device"} & failure.numbers.keys()


def test_every_failure_has_a_failed_start() -> None:
    """Each code is the outcome of a whole log in these tests."""
    assert {row.kind for row in FAILURES} | {"killed"} == set(FAILURE_CODES)


def test_codes_are_those_of_the_core() -> None:
    """Failures that the core can size around carry its reason codes."""
    shared = {
        "no_memory_for_kv_cache", "kv_cache_too_small", "free_memory_below_request",
        "mamba_blocks_below_max_num_seqs", "context_too_long", "heads_not_divisible",
        "weights_do_not_fit",
    }  # fmt: skip
    assert shared <= set(FAILURE_CODES)
    assert shared <= set(ReasonCode.__args__)  # type: ignore[attr-defined]


def test_needed_and_available_are_gib_also_where_vllm_wrote_gb() -> None:
    """0.8.0 prints GB and divides by 2**30 all the same."""
    row = row_for("kv_cache_too_small", "0.8.0", "E2b")
    (start,) = read_start_log(failed_start("0.8.0", row, "profiling")).starts
    assert start.failure is not None
    assert dict(start.failure.numbers) == {
        "max_model_len": 96_000, "needed_gib": 11.72, "available_gib": 3.5,
    }  # fmt: skip


def test_amounts_become_gib() -> None:
    """PyTorch's MiB are GiB in the answer, and the card's total is told."""
    row = row_for("out_of_memory", "0.32.0")
    (start,) = read_start_log(failed_start("0.32.0", row, "capture")).starts
    assert start.failure is not None
    assert start.failure.numbers["tried_gib"] == 0.875
    assert start.failure.numbers["free_gib"] == pytest.approx(310.5 / 1024)
    assert start.observed.total_memory_gib == 47.4


def test_the_cause_beats_its_consequences() -> None:
    """Out of memory while loading is a matter of weights, whatever is printed after it."""
    cause = row_for("weights_do_not_fit", "0.32.0").printed()
    oom = row_for("out_of_memory", "0.32.0").printed()
    text = f"{oom}\n{cause} (original error: {oom})\nEngine core initialization failed.\nKilled"
    (start,) = read_start_log(text).starts
    assert start.failure is not None
    assert start.failure.code == "weights_do_not_fit"
    assert start.failure.line == 2


def test_a_server_that_came_up_did_not_fail() -> None:
    """An out-of-memory text before the engine was ready is no failure of the start."""
    oom = row_for("out_of_memory", "0.32.0").printed()
    lines = start_log("0.32.0", SERVERS[0]).text.split("\n")
    (start,) = read_start_log("\n".join([*lines[:-1], oom, lines[-1]])).starts
    assert start.failure is None
    (start,) = read_start_log("\n".join([*lines, oom])).starts
    assert start.failure is not None
    assert start.failure.stage == "running"


@pytest.mark.parametrize("line", ["Killed", "our-vllm-1  | Killed", "> Killed"])
def test_killed_counts_where_it_stands_alone(line: str) -> None:
    """The kernel's single word ends a start on unified memory; in a sentence it means nothing."""
    before = start_log("0.32.0", SERVERS[0]).text.split("\n")[:8]
    starts = read_start_log("\n".join([*before, line])).starts
    assert [start.failure.code for start in starts if start.failure] == ["killed"]
    (start,) = read_start_log("\n".join([*before, "Killed by a rolling update"])).starts
    assert start.failure is None


def test_the_newest_failure_of_a_restarting_server_has_its_own_start() -> None:
    """Each attempt of a server that restarts is a start with its own cause."""
    first = failed_start("0.32.0", row_for("no_memory_for_kv_cache", "0.32.0"), "profiling")
    second = failed_start("0.32.0", row_for("kv_cache_too_small", "0.32.0"), "profiling")
    starts = read_start_log(f"{first}\n{second}\n{start_log('0.32.0', SERVERS[0]).text}").starts
    codes = [start.failure.code if start.failure else None for start in starts]
    assert codes == ["no_memory_for_kv_cache", "kv_cache_too_small", None]
