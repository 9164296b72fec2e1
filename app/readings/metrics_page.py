"""A pasted Prometheus page of a running vLLM: what holds it back, and for how many requests.

Reads the names of V0 and V1, several engines, and a second page behind a line `---`, which gives
what happened between the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from app.readings.engine_metrics import EngineMetrics, engine_metrics
from app.readings.log_text import split_lines
from app.readings.metrics_change import MetricsChange, compare
from app.readings.metrics_samples import MetricsProblem, read_samples
from app.readings.request_lengths import RequestLengths, request_lengths
from app.readings.verdict import Verdict, judge

MAX_LENGTH: Final = 1_000_000
_SEPARATOR = re.compile(r"\s{0,20}-{3,80}\s{0,20}")
_PAGES: Final = 2


class MetricsPageTooLongError(ValueError):
    """More than MAX_LENGTH characters; carries how many."""

    def __init__(self, length: int) -> None:
        """Keep the length for the message."""
        super().__init__(length)
        self.length = length


@dataclass(frozen=True, slots=True)
class MetricsReading:
    """Everything read from a pasted page. Without an engine there is no verdict.

    `lengths` are those of all requests that finished since the start, over all engines.
    """

    engines: tuple[EngineMetrics, ...]
    verdict: Verdict | None
    change: MetricsChange | None
    problems: tuple[MetricsProblem, ...]
    lengths: RequestLengths | None = None


def read_metrics_page(
    text: str, *, max_num_seqs: int | None = None, seconds_between: float | None = None
) -> MetricsReading:
    """Read one page, or two separated by a line `---`, the earlier one first.

    max_num_seqs     the server's `--max-num-seqs`, which the page does not tell
    seconds_between  time between the two pages
    Raises MetricsPageTooLongError above MAX_LENGTH characters; every other fault is a problem in
    the answer. Lines are numbered as `log_text.split_lines` counts them.
    """
    if len(text) > MAX_LENGTH:
        raise MetricsPageTooLongError(len(text))
    problems: list[MetricsProblem] = []
    pages = [read_samples(lines, problems) for lines in _pages(text, problems)]
    pages = [page for page in pages if page]
    if not pages:
        problems.append(MetricsProblem(0, "no_vllm_metrics"))
        return MetricsReading((), None, None, tuple(problems))
    change = None
    if len(pages) == _PAGES:
        pages, change = compare(pages[0], pages[1], seconds_between, problems)
    engines = tuple(engine_metrics(samples) for samples in pages[-1])
    verdict = judge(engines, change, max_num_seqs)
    if verdict is None:
        problems.append(MetricsProblem(0, "no_cache_usage"))
    lengths = request_lengths(pages[-1], engines[0].max_model_len)
    return MetricsReading(engines, verdict, change, tuple(problems), lengths)


def _pages(text: str, problems: list[MetricsProblem]) -> list[list[tuple[int, str]]]:
    pages: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(split_lines(text), start=1):
        if not _SEPARATOR.fullmatch(line):
            pages[-1].append((number, line))
        elif len(pages) == _PAGES and any(each.strip() for _, each in pages[-1]):
            problems.append(MetricsProblem(number, "more_than_two_pages"))
            break
        elif any(each.strip() for _, each in pages[-1]):
            pages.append([])
    return pages
