"""Forgetting in time: on start and once a day, whatever is older than it may be."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from app.quotes.repository import Repository

INTERVAL: Final = timedelta(days=1)
BATCH: Final = 100


def expire(repository: Repository, days: int, moment: datetime) -> int:
    """Delete every quote older than a number of days; say how many.

    Sweeps the files even if there was none, in case an earlier sweep had to give way.
    """
    gone = 0
    while batch := repository.older_than(moment - timedelta(days=days), BATCH):
        gone += repository.forget(batch, moment)
    if not gone:
        repository.sweep()
    return gone
