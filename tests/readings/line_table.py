"""Kinds of lines by release: vLLM's wordings with numbers of our own."""

from typing import Final

from tests.readings.cache_rows import CACHE, RUNNING
from tests.readings.failure_rows import FAILURES
from tests.readings.graph_rows import GRAPHS, SUMMARY
from tests.readings.identity_rows import IDENTITY
from tests.readings.line_row import Row
from tests.readings.memory_rows import PROFILE, WEIGHTS
from tests.readings.releases import within

LINE_TABLE: Final = (
    *WEIGHTS, *PROFILE, *GRAPHS, *SUMMARY, *CACHE, *IDENTITY, *RUNNING, *FAILURES,
)  # fmt: skip


def row_for(kind: str, version: str, row: str | None = None) -> Row:
    """The first wording of a kind that a release prints. Raises LookupError without one."""
    for each in LINE_TABLE:
        if (
            each.kind == kind
            and row in (None, each.row)
            and within(version, each.since, each.until)
        ):
            return each
    raise LookupError(f"{version} prints no {kind}")
