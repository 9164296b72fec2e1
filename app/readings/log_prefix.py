"""What stands before a record's message: wrapper, service, vLLM's process tag, level, file."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_LOOK_BEHIND: Final = 240
_LINE_HEAD: Final = 160

_TIME = r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[\d.,]{0,12}(?:Z|[+-]\d\d:?\d\d)?"
_COMPOSE = re.compile(
    rf"\s{{0,12}}(?:{_TIME} )?(?P<service>[A-Za-z][\w.\-]{{0,80}}|\[[\w.\- ]{{1,60}}\])\s{{1,80}}\|"
)
_LEVELS: Final = frozenset({"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "TRACE", "WARN"})
_POD = re.compile(r"\[(?P<service>pod/[^\]\s]{1,200})\]")
_UNIT = re.compile(
    r"(?:[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+\-]{8,24}Z?)"
    r" [\w.\-]{1,80} (?P<service>[\w.@\-]{1,80})\[\d{1,10}\]: "
)
_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z]\w{0,60})(?: rank=(?P<rank>\d{1,6}))? pid=(?P<pid>\w{1,12})"
    r"(?:, ip=(?P<ip>[\w.:<>\-]{1,60}))?\)"
)
_SOURCE: Final = ".py:"
_NAME_REVERSED = re.compile(r"\w{1,60}")
_RECORD = re.compile(
    r"\(\w{1,60}(?: rank=\d{1,6})? pid=\w{1,12}"
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL):? {1,8}(?:\d{1,3}[-.]\d|\[?\w{1,60}\.py:|[A-Z])"
    r"|\d\d:\d\d:\d\d \[\w{1,60}\.py:"
)
_INDEX = re.compile(r"(?<=_)(TP|PP|DP|EP|DCP|PCP)(\d{1,5})(?=_|$)")
_ENGINE_INDEX = re.compile(r"EngineCore_(?:DP)?(\d{1,5})$")
_MANY_PER_NAME: Final = frozenset({"Worker", "VllmWorkerProcess", "RayWorkerWrapper", "VllmWorker"})


class Prefix(NamedTuple):
    """Where a message came from.

    process  vLLM's tag; with the process id only where several processes share the tag
    file     vLLM source file that logged it, empty where it is cut off
    """

    process: str = ""
    file: str = ""


def starts_record(line: str) -> bool:
    """Whether a line begins a log record rather than continuing one."""
    return _RECORD.search(line, 0, _LINE_HEAD) is not None


def service_of(line: str) -> str:
    """Name of the compose service, pod or unit that a line is marked with; empty for none.

    Process ids and times are no part of the name, so a service that restarts keeps it.
    """
    match = _COMPOSE.match(line)
    if match and match["service"] not in _LEVELS:
        return match["service"].strip("[] ")
    match = _POD.match(line) or _UNIT.match(line)
    return match["service"] if match else ""


def prefix_of(text: str, record_start: int, message_start: int) -> Prefix:
    """Read the prefix between the start of a record and its message.

    Of several tags on one line (Ray around vLLM, or records glued together) the last one counts.
    """
    begin = max(record_start, message_start - _LOOK_BEHIND)
    return Prefix(_process(text, begin, message_start), _file(text, begin, message_start))


def _process(text: str, begin: int, end: int) -> str:
    mark = text.rfind(" pid=", begin, end)
    opening = text.rfind("(", begin, mark) if mark >= 0 else -1
    closing = text.find(")", mark, end) if opening >= 0 else -1
    return _label(text[opening : closing + 1]) if closing >= 0 else ""


def _file(text: str, begin: int, end: int) -> str:
    """Name of the last source file mentioned, read backwards from its suffix."""
    suffix = text.rfind(_SOURCE, begin, end)
    if suffix < 0:
        return ""
    name = _NAME_REVERSED.match(text[max(begin, suffix - 60) : suffix][::-1])
    return f"{name[0][::-1]}.py" if name else ""


@lru_cache(maxsize=1024)
def _label(tag: str) -> str:
    match = _PROCESS.fullmatch(tag)
    if match is None:
        return ""
    name = match["name"]
    if match["rank"]:
        return f"{name} rank={match['rank']}"
    if name not in _MANY_PER_NAME:
        return name
    where = f", ip={match['ip']}" if match["ip"] else ""
    return f"{name} pid={match['pid']}{where}"


def parallel_indices(process: str) -> dict[str, int]:
    """Indices in a process tag: `Worker_PP1_TP3` gives PP 1 and TP 3, `EngineCore_DP2` DP 2."""
    engine = _ENGINE_INDEX.match(process)
    if engine:
        return {"DP": int(engine[1])}
    return {kind: int(number) for kind, number in _INDEX.findall(process)}
