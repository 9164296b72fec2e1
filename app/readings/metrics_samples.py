"""vLLM's samples in a pasted `/metrics` page, grouped by engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from app.readings.histogram import Histogram

MAX_LINE_LENGTH: Final = 16_000

_WANTED: Final = (
    "vllm:num_requests_", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
    "vllm:num_preemptions", "vllm:prefix_cache_", "vllm:gpu_prefix_cache_",
    "vllm:cache_config_info", "vllm:request_prompt_tokens", "vllm:request_generation_tokens",
    "vllm:request_success", "vllm:prompt_tokens_total", "vllm:prompt_tokens_created",
    "vllm:generation_tokens_total",
)  # fmt: skip
_TYPOGRAPHY: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00a0": " "})
_GREATEST: Final = 1e15
_MARKS: Final = " >`|\t"


@dataclass(frozen=True, slots=True)
class MetricsProblem:
    """What could not be used; `line` is 1-based, 0 for the page as a whole.

    code  `unreadable_line`, `line_too_long`, `no_vllm_metrics`, `no_cache_usage`,
          `more_than_two_pages`, `counters_went_back`, `pages_swapped`, `other_server`
    """

    line: int
    code: str


@dataclass(slots=True)
class EngineSamples:
    """One engine's samples: by metric name, then by their labels. A repeated sample replaces."""

    engine: str
    model: str | None
    samples: dict[str, dict[frozenset[tuple[str, str]], float]] = field(default_factory=dict)
    timestamp: float | None = None

    def add(self, sample: Sample) -> None:
        """Keep one sample."""
        labels = frozenset(sample.labels.items())
        self.samples.setdefault(sample.name, {})[labels] = sample.value
        if sample.timestamp is not None:
            self.timestamp = float(sample.timestamp)

    def value(self, *names: str) -> float | None:
        """The first of these metrics that the page has, summed over further labels."""
        for name in names:
            if name in self.samples:
                return sum(self.samples[name].values())
        return None

    def labelled(self, name: str, label: str) -> dict[str, float]:
        """Values of a metric by one of its labels."""
        return {
            text: value
            for labels, value in self.samples.get(name, {}).items()
            if (text := dict(labels).get(label)) is not None
        }

    def histogram(self, name: str) -> Histogram | None:
        """A histogram by its base name; None where the page has no count for it."""
        count = self.value(f"{name}_count")
        if count is None:
            return None
        buckets = {
            bound: value
            for text, value in self.labelled(f"{name}_bucket", "le").items()
            if (bound := _bound(text)) is not None
        }
        return Histogram(buckets, self.value(f"{name}_sum") or 0.0, count)

    def config(self) -> Mapping[str, str]:
        """Labels of `vllm:cache_config_info`; empty where the page has none."""
        infos = list(self.samples.get("vllm:cache_config_info", ()))
        return dict(infos[-1]) if infos else {}


def read_samples(
    lines: Iterable[tuple[int, str]], problems: list[MetricsProblem]
) -> list[EngineSamples]:
    """Group the samples of numbered lines by engine and model, in order of appearance.

    Only the metrics that are used are parsed. A line that Prometheus' own parser refuses is noted
    in `problems` and skipped; values that are no number are skipped silently, as Prometheus prints
    NaN for a series without data, and so is what is less than none: nothing that is read here goes
    below zero.
    """
    engines: dict[tuple[str, str], EngineSamples] = {}
    unowned: list[Sample] = []
    for number, line in lines:
        for sample in _parse(number, line, problems):
            model = sample.labels.get("model_name")
            if not 0 <= sample.value < _GREATEST:
                continue
            if model is None:
                unowned.append(sample)
                continue
            engine = sample.labels.get("engine", "0")
            engines.setdefault((engine, model), EngineSamples(engine, model)).add(sample)
    for sample in unowned:
        # The information metric names no model, in older releases no engine either.
        owner = sample.labels.get("engine")
        if not engines:
            engines[owner or "0", ""] = EngineSamples(owner or "0", None)
        for known in engines.values():
            if owner in (None, known.engine):
                known.add(sample)
    return list(engines.values())


def _parse(number: int, line: str, problems: list[MetricsProblem]) -> Iterator[Sample]:
    text = line.strip(_MARKS)
    if not text.startswith(_WANTED):
        return
    if len(text) > MAX_LINE_LENGTH:
        problems.append(MetricsProblem(number, "line_too_long"))
        return
    try:
        families = list(text_string_to_metric_families(text.translate(_TYPOGRAPHY) + "\n"))
    except (ValueError, IndexError, KeyError):
        problems.append(MetricsProblem(number, "unreadable_line"))
        return
    for family in families:
        yield from family.samples


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) or bound < 0 else bound
