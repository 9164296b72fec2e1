"""A text as a sequence of events: recognised lines, listed arguments and commands, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from app.readings.command_block import COMMAND_HEADS, block_at
from app.readings.line_kind import LineForm
from app.readings.log_lines import LINE_HEADS, WrapBudget, match_line
from app.readings.log_prefix import Prefix, prefix_of, service_of, starts_record
from app.readings.log_text import LogText
from app.readings.observation import ArgValue, Value
from app.readings.shell_command import read_command
from app.readings.stated_arguments import ARGUMENT_HEADS, read_arguments

# Far above what 5 MB of a server's log hold (about 25,000); bounds what a hostile text can cost.
MAX_EVENTS: Final = 100_000
COMMAND: Final = "command"
_ARGUMENT_HEADS: Final = frozenset(ARGUMENT_HEADS)
_COMMAND_HEADS: Final = frozenset(COMMAND_HEADS)
_SERVICE_LENGTH: Final = 260
_MERGE_DISTANCE: Final = 6
_NO_ARGS: Final[Mapping[str, ArgValue]] = {}
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}


class Event(NamedTuple):
    """Something the text says.

    line, last_line  pasted lines, from 1
    begin, end       offsets in the cleaned text
    form             the wording that fitted; None for arguments and commands
    vllm_version, engine  from the engine's config line, or the tag of an image
    """

    line: int
    last_line: int
    begin: int
    end: int
    kind: str
    values: Mapping[str, Value]
    prefix: Prefix
    service: str
    form: LineForm | None = None
    engine_args: Mapping[str, ArgValue] = _NO_ARGS
    environment: Mapping[str, str] = _NO_ENVIRONMENT
    vllm_version: str | None = None
    engine: str | None = None


def read_events(log: LogText) -> list[Event]:
    """All events in order, the first MAX_EVENTS of them; no two overlap.

    One pass per literal, then one attempt per place where a literal stands, none of which looks
    further than a bounded distance: linear in the length of the text.
    """
    events: list[Event] = []
    budget = WrapBudget()
    consumed = commands_consumed = 0
    for position, head in _places(log.text):
        if position < consumed:
            continue
        if head in _COMMAND_HEADS:
            if position < commands_consumed:
                continue
            event, commands_consumed = _command(
                log, position, head, max(consumed, commands_consumed)
            )
        elif head in _ARGUMENT_HEADS:
            event = _arguments(log, position, head)
        else:
            event = _line(log, position, head, events, budget)
        if event is not None:
            consumed = event.end
            events.append(event)
            if len(events) >= MAX_EVENTS:
                break
    return events


def _places(text: str) -> list[tuple[int, str]]:
    """Where the literals stand, in order; of two at one place the longer first."""
    places = [
        (position, -len(head), head)
        for head in (*LINE_HEADS, *ARGUMENT_HEADS, *COMMAND_HEADS)
        for position in _find_all(text, head)
    ]
    places.sort()
    return [(position, head) for position, _, head in places]


def _find_all(text: str, literal: str) -> Iterator[int]:
    position = text.find(literal)
    while position >= 0:
        yield position
        position = text.find(literal, position + len(literal))


def _line(
    log: LogText, position: int, head: str, events: list[Event], budget: WrapBudget
) -> Event | None:
    match = match_line(log, position, head, budget)
    if match is None:
        return None
    event = _event(log, match.begin, match.end, match.kind.kind, match.values, form=match.form)
    if match.kind.merge and events and _continues(log, events[-1], event):
        previous = events.pop()
        event = event._replace(
            line=previous.line,
            begin=previous.begin,
            values={**previous.values, **event.values},
            prefix=previous.prefix,
            service=previous.service,
        )
    return event


def _continues(log: LogText, previous: Event, event: Event) -> bool:
    """Whether a piece of a long record belongs to the piece before it."""
    if previous.kind != event.kind or event.line - previous.last_line > _MERGE_DISTANCE:
        return False
    if event.line == previous.last_line:
        between = min(event.begin, previous.end + _SERVICE_LENGTH)
        return not starts_record(log.text[previous.end : between])
    record = log.record_at(event.begin)
    start = log.offsets[record]
    return not starts_record(log.text[start : min(log.end_of(record), start + _SERVICE_LENGTH)])


def _arguments(log: LogText, position: int, head: str) -> Event | None:
    stated = read_arguments(log, position, head)
    if stated is None:
        return None
    values = _scalars(stated.engine_args)
    if stated.vllm_version:
        values["vllm_version"] = stated.vllm_version
    event = _event(log, stated.begin, stated.end, stated.kind, values)
    return event._replace(
        engine_args=stated.engine_args,
        vllm_version=stated.vllm_version,
        engine=stated.engine,
    )


def _command(log: LogText, position: int, head: str, consumed: int) -> tuple[Event | None, int]:
    """The command at `position`, and up to where the text was searched for one."""
    block = block_at(log, position, head, consumed)
    if block is None:
        return None, position + 1
    searched = max(block.begin + len(block.text), position + 1)
    command = read_command(block)
    if command is None:
        return None, searched
    end = max(command.end, position + len(head))
    values = {**_scalars(command.engine_args), **command.environment}
    event = _event(log, block.begin, end, COMMAND, values)
    return event._replace(
        engine_args=command.engine_args,
        environment=command.environment,
        vllm_version=command.image_version,
    ), searched


def _scalars(engine_args: Mapping[str, ArgValue]) -> dict[str, Value]:
    return {
        name: value for name, value in engine_args.items() if isinstance(value, int | float | str)
    }


def _event(
    log: LogText,
    begin: int,
    end: int,
    kind: str,
    values: Mapping[str, Value],
    form: LineForm | None = None,
) -> Event:
    start = log.offsets[log.record_at(begin)]
    return Event(
        line=log.line_at(begin),
        last_line=log.line_at(end - 1),
        begin=begin,
        end=end,
        kind=kind,
        values=values,
        prefix=prefix_of(log.text, start, begin),
        service=service_of(log.text[start : min(begin, start + _SERVICE_LENGTH)]),
        form=form,
    )
