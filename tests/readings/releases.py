"""Releases of vLLM whose wording is known, and how their log lines begin."""

from typing import Final

RELEASES: Final = (
    "0.6.6", "0.7.3", "0.8.0", "0.8.5", "0.9.0", "0.9.2", "0.10.0", "0.10.1", "0.10.2", "0.11.0",
    "0.11.2", "0.12.0", "0.13.0", "0.14.1", "0.15.1", "0.16.0", "0.17.1", "0.18.1", "0.19.1",
    "0.20.0", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.27.1", "0.28.0",
    "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0",
)  # fmt: skip


def number(version: str) -> tuple[int, ...]:
    """Integers of a version, for comparisons."""
    return tuple(int(part) for part in version.split("."))


def within(version: str, since: str | None, until: str | None) -> bool:
    """Whether a release lies between two others, both included."""
    return (since is None or number(since) <= number(version)) and (
        until is None or number(version) <= number(until)
    )


def engine_tag(version: str, rank: int = 0) -> str:
    """Process tag of an engine core, a blank behind it; none before V1 had a process of its own."""
    if number(version) < (0, 10):
        return ""
    if number(version) < (0, 10, 2):
        return f"(EngineCore_{rank} pid={140 + rank}) "
    if number(version) < (0, 20):
        return f"(EngineCore_DP{rank} pid={140 + rank}) "
    return f"(EngineCore pid={140 + rank}) "


def worker_tag(version: str, rank: int, *, tensor_parallel_size: int) -> str:
    """Process tag of a worker; one worker alone logs as its engine core does."""
    if tensor_parallel_size == 1:
        return engine_tag(version)
    if number(version) < (0, 8):
        return f"(VllmWorkerProcess pid={300 + rank}) " if rank else ""
    if number(version) < (0, 10):
        return f"(VllmWorker rank={rank} pid={300 + rank}) "
    return f"(Worker_TP{rank} pid={300 + rank}) "


def api_tag(version: str) -> str:
    """Process tag of the API server."""
    return "(APIServer pid=1) " if number(version) >= (0, 10) else ""


def record(version: str, tag: str, file: str, line: int, text: str, level: str = "INFO") -> str:
    """One record as that release writes it; every line of a longer text carries the prefix."""
    where = f"[{file}:{line}]" if number(version) >= (0, 8) else f"{file}:{line}]"
    prefix = f"{tag}{level} 06-14 09:41:{line % 60:02d} {where} "
    return "\n".join(prefix + part for part in text.split("\n"))
