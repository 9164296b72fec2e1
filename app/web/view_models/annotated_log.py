"""A pasted log as rows: every line numbered, recognised ones with what was read from them.

Long logs are cut to what was recognised with its surroundings; nothing here is ever kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.readings.failures import FAILURE_CODES
from app.readings.log_text import split_lines
from app.readings.observation import ReadLine

WHOLE_LOG: Final = 300
MAX_RECOGNISED: Final = 400
SURROUNDINGS: Final = 1
MAX_LENGTH: Final = 1_000
# A running server prints these every few seconds: the first and the last ones tell enough.
REPEATED: Final = frozenset({"statistics", "iteration_statistics", "preemption"})
SHOWN_OF_A_KIND: Final = 4

_COLOUR = re.compile("[\x1b\u241b]\\[[0-?]{0,20}[ -/]{0,4}[@-~]")
_EDGES: Final[Mapping[str, str]] = {
    "model_loading": "weights", "checkpoint_size": "weights", "weights_loading": "weights",
    "external_weights": "weights", "memory_profile": "peak_activation",
    "v0_memory_profile": "peak_activation", "v0_memory_results": "peak_activation",
    "encoder_cache": "peak_activation", "max_num_batched_tokens": "peak_activation",
    "graph_capture": "cudagraph_estimate", "available_kv_cache_memory": "kv_cache",
    "reserved_kv_cache": "kv_cache", "max_concurrency": "kv_cache", "statistics": "kv_cache",
    "iteration_statistics": "kv_cache", "initial_free_memory": "non_torch",
    "worker_memory_snapshot": "non_torch", "free_memory_after_profiling": "non_torch",
    "free_memory_grew": "non_torch", "memory_summary": "kv_cache",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the paste.

    reads    what was recognised in it
    edge     colour of its edge: a memory term, `failure`, `plain`; "" for an unrecognised line
    cut      characters at its end that are not shown
    skipped  lines before it that are not shown
    """

    number: int
    text: str
    reads: tuple[ReadLine, ...] = ()
    edge: str = ""
    cut: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class AnnotatedLog:
    """The rows to show. `skipped` lines follow the last row; `recognised` counts all of them."""

    rows: tuple[LogRow, ...]
    lines: int
    recognised: int
    skipped: int


def annotate(text: str, reads: Sequence[ReadLine]) -> AnnotatedLog:
    """Number the lines of a paste and attach what was recognised."""
    lines = split_lines(text.rstrip())
    by_line: dict[int, list[ReadLine]] = {}
    for read in _telling(reads):
        by_line.setdefault(read.line, []).append(read)
    continued = {
        number: read
        for read in reads
        for number in range(read.line + 1, min(read.last_line, read.line + 100) + 1)
    }
    rows: list[LogRow] = []
    shown_until = 0
    for number in _shown(len(lines), by_line):
        found = tuple(by_line.get(number, ()))
        edge = _edge(found) or (_edge((continued[number],)) if number in continued else "")
        shown, cut = _shown_text(lines[number - 1])
        rows.append(LogRow(number, shown, found, edge, cut, number - shown_until - 1))
        shown_until = number
    return AnnotatedLog(tuple(rows), len(lines), len(reads), len(lines) - shown_until)


def _telling(reads: Sequence[ReadLine]) -> Iterator[ReadLine]:
    """Leave out the middle of what a server repeats, and what is too much for a page."""
    counts: dict[str, int] = {}
    for read in reads:
        counts[read.kind] = counts.get(read.kind, 0) + 1
    seen: dict[str, int] = {}
    kept = 0
    for read in reads:
        place = seen[read.kind] = seen.get(read.kind, 0) + 1
        middle = SHOWN_OF_A_KIND < place <= counts[read.kind] - SHOWN_OF_A_KIND
        if (read.kind in REPEATED and middle) or kept >= MAX_RECOGNISED:
            continue
        kept += 1
        yield read


def _shown(count: int, recognised: Iterable[int]) -> Iterable[int]:
    """Numbers of the lines to show: all of a short log, else those around recognised ones."""
    if count <= WHOLE_LOG:
        return range(1, count + 1)
    wanted = {
        near
        for number in recognised
        for near in range(number - SURROUNDINGS, number + SURROUNDINGS + 1)
        if 1 <= near <= count
    }
    return sorted(wanted)


def _edge(reads: Sequence[ReadLine]) -> str:
    if not reads:
        return ""
    kind = reads[0].kind
    if kind in FAILURE_CODES:
        return "failure"
    if kind.startswith("cudagraph"):
        return "cudagraph_estimate"
    if kind.startswith(("kv_cache_size", "num_gpu_blocks")):
        return "kv_cache"
    return _EDGES.get(kind, "plain")


def _shown_text(line: str) -> tuple[str, int]:
    plain = _COLOUR.sub("", line[: 4 * MAX_LENGTH])
    cut = max(0, len(line) - 4 * MAX_LENGTH) + max(0, len(plain) - MAX_LENGTH)
    return plain[:MAX_LENGTH], cut
