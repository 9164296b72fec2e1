"""Failed starts: as far as vLLM comes, then the traceback with which it gives up."""

from collections.abc import Sequence

from tests.readings.line_row import Row
from tests.readings.logs import start_log
from tests.readings.releases import engine_tag, number
from tests.readings.servers import SERVERS, Server

_CONSEQUENCE = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
_LAST_BEFORE = {
    "start": ("with config:",),
    "loading": ("with config:",),
    "profiling": ("Model loading took", "Loading model weights took"),
    "capture": ("Maximum concurrency",),
}


def failed_start(version: str, row: Row, stage: str, server: Server = SERVERS[0]) -> str:
    """The log up to a stage, and the error as several processes repeat it.

    `start` ends before the engine's configuration, `loading` behind it, `profiling` behind the
    weights, `capture` behind the KV cache.
    """
    lines = start_log(version, server).text.split("\n")
    marks = [
        index
        for index, line in enumerate(lines)
        if any(mark in line for mark in _LAST_BEFORE[stage])
    ]
    before = lines[: marks[-1] + (stage != "start")]
    return "\n".join([*before, *_traceback(version, row.printed())])


def _traceback(version: str, message: str) -> Sequence[str]:
    tag = engine_tag(version)
    where = "core.py:388]" if number(version) < (0, 8) else "[core.py:388]"
    error = f"{tag}ERROR 06-14 09:42:10 {where} "
    frames = (
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3/dist-packages/vllm/our/core.py", line 379, in run_engine_core',
        "    engine_core = OurEngine(*args, **kwargs)",
    )
    return [
        *(error + frame for frame in frames),
        f"{error}ValueError: {message}",
        *frames,
        f"ValueError: {message}",
        f"RuntimeError: {_CONSEQUENCE}",
    ]
