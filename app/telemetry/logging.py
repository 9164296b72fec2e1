"""Log lines about the service: JSON in production, readable in development.

A line carries a request id and a route template, never a person: no address, no query string, no
form value. Only the keys in `ALLOWED_KEYS` keep their value, so a careless call cannot leak.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

ALLOWED_KEYS = frozenset({
    "attempt", "channel", "code", "count", "duration_ms", "environment", "error", "event",
    "frames", "level", "logger", "method", "outcome", "quote_id", "request_id", "route", "status",
    "timestamp", "version",
})  # fmt: skip
WITHHELD = "[withheld]"


def withhold_unknown(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace the value of every key that is not known to be free of personal data."""
    return {key: value if key in ALLOWED_KEYS else WITHHELD for key, value in event.items()}


def configure(*, production: bool, level: str) -> None:
    """Set up structlog for the process; calling it again replaces the set-up.

    Args:
        production: JSON lines instead of console lines, also for uvicorn's own messages.
        level: least severe level that is written, such as "info".
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if production
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        withhold_unknown,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=False,
    )
    if production:
        _route_uvicorn_through(shared, renderer)


def _route_uvicorn_through(
    shared: list[structlog.typing.Processor], renderer: structlog.typing.Processor
) -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    # uvicorn's access lines hold addresses and query strings
    logging.getLogger("uvicorn.access").disabled = True


def frames_of(error: BaseException) -> list[str]:
    """Return where an error came from as "file:line function", without its message.

    Messages may quote what a person typed; places in the code never do.
    """
    return [
        f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)[-8:]
    ]
