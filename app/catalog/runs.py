"""Long lists of a config, written short.

A list with a rhythm, like `layer_types` of 48 layers, is written
`{"runs": [[12, ["a", "a", "a", "b"]]]}`: twelve times these four. Several runs follow each other.
"""

from __future__ import annotations

from typing import Any

MAX_LENGTH = 4096
_LONGEST_PERIOD = 16
_WORTH_IT = 8


class RunsError(ValueError):
    """A coded list that cannot be read; `key` is the config key it stands under."""

    def __init__(self, key: str, message: str) -> None:
        """Keep the key for the message of the catalogue."""
        super().__init__(message)
        self.key = key


def expand_runs(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Write every coded list of a config out in full; nested tables too.

    Raises RunsError with the key of the list that is not `[[times, [entries…]], …]`, or longer
    than MAX_LENGTH.
    """
    return {key: _expanded(value, f"{prefix}{key}") for key, value in config.items()}


def _expanded(value: object, key: str) -> object:
    if not isinstance(value, dict):
        return value
    if set(value) != {"runs"}:
        return expand_runs(value, f"{key}.")
    entries: list[Any] = []
    runs = value["runs"]
    if not isinstance(runs, list):
        raise RunsError(key, "`runs` must be a list of [times, [entries]].")
    for run in runs:
        match run:
            case [int(times), [*period]] if times > 0 and times * len(period) <= MAX_LENGTH:
                entries.extend(period * times)
            case _:
                raise RunsError(key, f"has the run {run!r}. Write [times, [entries]].")
    if len(entries) > MAX_LENGTH:
        raise RunsError(key, f"has {len(entries)} entries; {MAX_LENGTH} is the most.")
    return entries


def code_runs(entries: list[Any]) -> dict[str, Any] | list[Any]:
    """Write a list as runs where that is shorter; the list itself where it is not.

    At each place the period is taken that covers the most entries; of equal ones the shortest.
    """
    runs: list[list[Any]] = []
    start = 0
    while start < len(entries):
        times, period = _best_run(entries, start)
        runs.append([times, entries[start : start + period]])
        start += times * period
    written = sum(1 + len(period) for _, period in runs)
    return {"runs": runs} if written + _WORTH_IT <= len(entries) else entries


def _best_run(entries: list[Any], start: int) -> tuple[int, int]:
    best = (1, 1)
    for period in range(1, _LONGEST_PERIOD + 1):
        times = 1
        pattern = entries[start : start + period]
        while entries[start + times * period : start + (times + 1) * period] == pattern:
            times += 1
        if times > 1 and times * period > best[0] * best[1]:
            best = (times, period)
    return best
