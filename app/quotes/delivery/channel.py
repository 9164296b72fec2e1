"""What every way of delivering has in common."""

from __future__ import annotations

from typing import Protocol

from app.quotes.outbox import Delivery
from app.quotes.quote import Quote


class DeliveryError(Exception):
    """It was not delivered. `code` says why in one word, without quoting anybody."""

    def __init__(self, code: str) -> None:
        """Remember the code."""
        super().__init__(code)
        self.code = code


class Sender(Protocol):
    """One way to tell somebody of a quote."""

    async def send(self, delivery: Delivery, quote: Quote | None) -> None:
        """Tell it; return once the other side has taken it. `quote` is None for a deletion.

        Raises:
            DeliveryError: it was not taken, or nobody knows whether it was.
        """
