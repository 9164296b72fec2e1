"""What keeps robots out without asking people anything: a trap field, a clock, a counter."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from app.quotes.token import FormToken

if TYPE_CHECKING:
    from limits.strategies import SlidingWindowCounterRateLimiter

# hidden from people; a name no browser fills in by itself
TRAP_FIELD: Final = "homepage"
IPV4_PREFIX: Final = 24
IPV6_PREFIX: Final = 48


def too_fast(token: FormToken, moment: datetime, min_seconds: float) -> bool:
    """Whether a form came back sooner than a person can fill it in."""
    return moment - token.issued_at < timedelta(seconds=min_seconds)


class Limiter:
    """Counts what one network sends. In memory only, under a salted hash of a shortened address.

    The counts of one process; they are gone when it ends.
    """

    def __init__(self, rate: str) -> None:
        """Remember how many are too many.

        Args:
            rate: such as `20/hour`.
        """
        self._rate = rate
        self._salt = secrets.token_bytes(16)
        self._strategy: SlidingWindowCounterRateLimiter | None = None

    def seconds_to_wait(self, address: str) -> int:
        """Count one request from an address; 0 lets it pass, else the seconds until the next."""
        from limits import parse  # noqa: PLC0415 - a quarter second that only quotes need

        rate = parse(self._rate)
        key = self._key(address)
        strategy = self._strategy or self._make()
        if strategy.hit(rate, key):
            return 0
        reset: float = strategy.get_window_stats(rate, key).reset_time
        return max(1, math.ceil(reset - time.time()))

    def _make(self) -> SlidingWindowCounterRateLimiter:
        from limits.storage import MemoryStorage  # noqa: PLC0415 - see above
        from limits.strategies import SlidingWindowCounterRateLimiter  # noqa: PLC0415 - see above

        self._strategy = SlidingWindowCounterRateLimiter(MemoryStorage())
        return self._strategy

    def _key(self, address: str) -> str:
        return hashlib.blake2b(network_of(address).encode(), key=self._salt).hexdigest()[:24]


def network_of(address: str) -> str:
    """Return the network of an address: /24 of IPv4, /48 of IPv6; one for what is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    prefix = IPV4_PREFIX if parsed.version == 4 else IPV6_PREFIX  # noqa: PLR2004 - IP versions
    return str(ipaddress.ip_network((parsed, prefix), strict=False))
