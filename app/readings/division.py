"""Dividing the events of a text into starts: by service, then where a server begins anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from app.readings.events import COMMAND, Event
from app.readings.failures import FAILURE_CODES
from app.readings.log_prefix import parallel_indices

_FAILURES: Final = frozenset(FAILURE_CODES)
# Printed by the API server before any engine process runs.
_BEGINNINGS: Final = frozenset({"vllm_version", "model_name", "non_default_args", "server_args"})
# The same, but vLLM also prints these again in other processes.
_EARLY: Final = frozenset({"architecture", "max_model_len", "max_num_batched_tokens"})
_CACHE_KINDS: Final = frozenset({
    "kv_cache_size", "kv_cache_size_and_concurrency", "max_concurrency", "num_gpu_blocks",
})  # fmt: skip
_NO_PROGRESS: Final = _BEGINNINGS | _EARLY | {
    COMMAND, "platform", "gpu_name", "kv_cache_dtype", "async_scheduling", "mamba_cache_mode",
    "attention_block_size", "mamba_page_padding",
}  # fmt: skip


@dataclass(slots=True)
class _Start:
    events: list[Event] = field(default_factory=list)
    engines: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    in_progress: bool = False
    has_cache: bool = False
    failed: bool = False
    concurrency_len: int | None = None

    @property
    def command_only(self) -> bool:
        return all(event.kind == COMMAND for event in self.events)

    def add(self, event: Event) -> None:
        self.events.append(event)
        kind = event.kind
        self.in_progress = self.in_progress or kind not in _NO_PROGRESS
        self.has_cache = self.has_cache or kind in _CACHE_KINDS
        self.failed = self.failed or kind in _FAILURES
        if kind == "engine_config":
            self.engines.add(event.prefix.process)
        elif kind == "model_loading":
            self.loaded.add(event.prefix.process)
        length = event.values.get("max_concurrency_len")
        if isinstance(length, int):
            self.concurrency_len = length


def divide(events: list[Event]) -> list[list[Event]]:
    """Group events into starts, in order of their first event. No event is lost or doubled.

    A paste with several services is divided by service first. Within a service a start begins where
    vLLM prints its banner, arguments or engine configuration again, where weights load again after
    a cache was sized, or at a new command.
    """
    services = {event.service for event in events if event.service}
    streams: dict[str, list[Event]] = {}
    for event in events:
        # A single service, and lines without its mark: the marks were cut off somewhere.
        key = event.service if len(services) > 1 else ""
        streams.setdefault(key, []).append(event)
    starts = [start for stream in streams.values() for start in _divide_stream(stream)]
    starts = _without_lone_commands(starts)
    return sorted((start.events for start in starts), key=lambda group: group[0].begin)


def _divide_stream(events: list[Event]) -> list[_Start]:
    starts = [_Start()]
    for event in events:
        current = starts[-1]
        if current.events and _begins_anew(current, event):
            moved = _moved(current, event)
            current = _Start()
            starts.append(current)
            for each in moved:
                current.add(each)
        current.add(event)
    return starts


def _begins_anew(start: _Start, event: Event) -> bool:
    kind, process = event.kind, event.prefix.process
    if kind == COMMAND:
        return True
    if process.startswith("ApiServer_"):
        # Further API servers of the same deployment announce themselves late.
        return False
    if kind in _BEGINNINGS:
        return start.in_progress
    if kind in _EARLY:
        return start.has_cache or start.failed
    if kind == "engine_config":
        if process in start.engines:
            return True
        sibling = bool(start.engines) and "DP" in parallel_indices(process)
        return not sibling and (bool(start.loaded) or start.failed or start.has_cache)
    if kind == "model_loading":
        again = not process or process in start.loaded
        return again and (start.has_cache or start.failed)
    length = event.values.get("max_concurrency_len")
    return start.concurrency_len is not None and length not in (None, start.concurrency_len)


def _moved(start: _Start, event: Event) -> list[Event]:
    """Lines before the event that belong to the new start already.

    A size line precedes its concurrency line; the platform is told before any banner.
    """
    kind = "kv_cache_size" if event.kind == "max_concurrency" else "platform"
    if len(start.events) > 1 and start.events[-1].kind == kind:
        return [start.events.pop()]
    return []


def _without_lone_commands(starts: list[_Start]) -> list[_Start]:
    """Give a command that no log follows to the start before it; keep it alone only if all are."""
    if all(start.command_only for start in starts):
        return [start for start in starts if start.events]
    kept: list[_Start] = []
    waiting: list[Event] = []
    for start in starts:
        if not start.command_only:
            start.events[:0] = waiting
            waiting = []
            kept.append(start)
        elif kept:
            kept[-1].events.extend(start.events)
        else:
            waiting.extend(start.events)
    return kept
