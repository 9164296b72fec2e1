"""Arguments that the log itself lists: `non-default args`, `Namespace(…)`, the engine's config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from app.readings.engine_flags import engine_args_of
from app.readings.log_prefix import starts_record
from app.readings.log_text import LogText
from app.readings.observation import ArgValue
from app.readings.python_literal import read_entries

ARGUMENT_HEADS: Final = ("non-default args: {", "args: Namespace(", "Initializing a")

_MAX_LENGTH: Final = 65_536
_LINE_HEAD: Final = 200
_ENGINE = re.compile(
    r"Initializing an? (?:(?P<engine>V[01]) )?LLM engine \(v(?P<version>[0-9][\w.+\-]{0,80})\)"
    r"(?: with config:)?"
)


@dataclass(frozen=True, slots=True)
class StatedArguments:
    """One listing.

    kind     `non_default_args` (only what a person set), `server_args` (everything, defaults too)
             or `engine_config` (as resolved by vLLM)
    engine   V0 or V1 where the line says so
    """

    begin: int
    end: int
    kind: Literal["non_default_args", "server_args", "engine_config"]
    engine_args: Mapping[str, ArgValue]
    vllm_version: str | None = None
    engine: str | None = None


def read_arguments(log: LogText, position: int, head: str) -> StatedArguments | None:
    """Read the listing that begins at `position`; None where the text only looks like one."""
    record = log.record_at(position)
    end = log.end_of(record)
    if head == "Initializing a":
        match = _ENGINE.match(log.text, position, end)
        if match is None:
            return None
        entries, stop = _read(log, record, match.end(), open_bracket=False)
        return StatedArguments(
            begin=position,
            end=max(stop, match.end()),
            kind="engine_config",
            engine_args=engine_args_of(entries),
            vllm_version=match["version"],
            engine=match["engine"],
        )
    entries, stop = _read(log, record, position + len(head), open_bracket=True)
    kind: Literal["non_default_args", "server_args"] = (
        "non_default_args" if head.startswith("non-default") else "server_args"
    )
    return StatedArguments(position, stop, kind, engine_args_of(entries))


def _read(
    log: LogText, record: int, begin: int, *, open_bracket: bool
) -> tuple[dict[str, ArgValue], int]:
    """Read entries in the record, and in the lines that continue it where it is cut short."""
    end = min(log.end_of(record), begin + _MAX_LENGTH)
    entries, stop = read_entries(log.text, begin, end)
    if not open_bracket and not log.text.endswith((",", ", "), begin, end):
        return entries, stop
    last, more = record, 1
    # Twice as many lines each time, so that a listing that goes on is not read over and over.
    while not log.text[stop:end].strip() and log.text[end - 1] not in "})":
        longer = _continued(log, last, more)
        if longer == last or end >= begin + _MAX_LENGTH:
            break
        last, more = longer, more * 2
        end = min(log.end_of(last), begin + _MAX_LENGTH)
        entries, stop = read_entries(log.text, begin, end)
    return entries, stop


def _continued(log: LogText, last: int, more: int) -> int:
    """The record up to `more` behind `last` that no new record begins before."""
    bound = min(last + more, len(log.offsets) - 1)
    while last < bound:
        begin = log.offsets[last + 1]
        following = log.text[begin : min(log.end_of(last + 1), begin + _LINE_HEAD)]
        if not following.strip() or starts_record(following):
            break
        last += 1
    return last
