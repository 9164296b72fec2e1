"""The worker that empties the outbox. Any number of processes may run one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from app.quotes import retention
from app.quotes.delivery.channel import DeliveryError, Sender
from app.quotes.outbox import CHANNELS, Channel, Delivery, Outbox
from app.quotes.repository import Repository
from app.quotes.token import new_id, now
from app.telemetry.logging import frames_of
from app.telemetry.metrics import Metrics

BATCH: Final = 10
# well below the lease, so that nothing is sent after the lease has run out
SEND_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 2.0
TROUBLE_SECONDS: Final = 10.0
NOT_CONFIGURED: Final = "not_configured"


class Courier:
    """Delivers what is due and forgets what is old, until it is told to stop."""

    def __init__(
        self,
        repository: Repository,
        outbox: Outbox,
        senders: Mapping[str, Sender],
        *,
        retry_seconds: float,
        retention_days: int,
        metrics: Metrics,
    ) -> None:
        """Remember ways, waits and counters.

        Args:
            repository: the quotes.
            outbox: what must be told of them.
            senders: by channel; what has no sender waits.
            retry_seconds: wait after a first failure.
            retention_days: age at which quotes are forgotten.
            metrics: where deliveries are counted.
        """
        self.name = new_id()
        self._repository = repository
        self._outbox = outbox
        self._senders = senders
        self._retry_seconds = retry_seconds
        self._retention_days = retention_days
        self._metrics = metrics
        self._bells = {channel: asyncio.Event() for channel in CHANNELS}
        self._closing = asyncio.Event()

    def wake(self) -> None:
        """Say that something new is due."""
        for bell in self._bells.values():
            bell.set()

    def stop(self) -> None:
        """Let `run` end as soon as what is being sent has been sent."""
        self._closing.set()
        self.wake()

    async def run(self) -> None:
        """Work until stopped: a lane for each channel, so that a slow one holds up no other."""
        day = retention.INTERVAL.total_seconds()
        await asyncio.gather(
            self._repeat(self._expire, self._closing, day),
            *(
                self._repeat(partial(self._empty, channel), bell, IDLE_SECONDS)
                for channel, bell in self._bells.items()
            ),
        )

    async def _repeat(
        self, work: Callable[[], Awaitable[None]], bell: asyncio.Event, seconds: float
    ) -> None:
        """Work, rest until the bell or for some seconds, again. A failure is logged, not fatal."""
        log = structlog.get_logger()
        while not self._closing.is_set():
            rest, until = seconds, bell
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the worker must outlive any fault
                # without its message, which may quote a person
                log.error("courier failed", error=type(error).__name__, frames=frames_of(error))  # noqa: TRY400
                rest, until = TROUBLE_SECONDS, self._closing
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await until.wait()
            if until is bell and bell is not self._closing:
                bell.clear()

    async def _empty(self, channel: Channel) -> None:
        while await self.deliver_due(channel, now()) and not self._closing.is_set():
            pass

    async def _expire(self) -> None:
        gone = await asyncio.to_thread(
            retention.expire, self._repository, self._retention_days, now()
        )
        if gone:
            structlog.get_logger().info("old quotes deleted", count=gone)

    async def deliver_due(self, channel: Channel, moment: datetime) -> int:
        """Deliver one batch of what is due on a channel; say how much that was."""
        due = await asyncio.to_thread(
            self._outbox.lease, self.name, channel, moment=moment, limit=BATCH
        )
        await asyncio.gather(*(self._deliver(each) for each in due))
        load = await asyncio.to_thread(self._outbox.load)
        self._metrics.outbox(waiting=load.waiting, dead=load.dead)
        return len(due)

    async def _deliver(self, delivery: Delivery) -> None:
        code = await self._attempt(delivery)
        if code is None:
            await asyncio.to_thread(self._outbox.delivered, delivery, self.name, now())
            self._metrics.delivery(delivery.channel, "delivered")
            return
        dead = await asyncio.to_thread(
            self._outbox.failed,
            delivery,
            self.name,
            now(),
            code=code,
            retry_seconds=self._retry_seconds,
        )
        self._metrics.delivery(delivery.channel, "dead" if dead else "failed")
        structlog.get_logger().warning(
            "delivery given up" if dead else "delivery failed",
            channel=delivery.channel,
            quote_id=delivery.quote_id,
            attempt=delivery.attempts,
            code=code,
        )

    async def _attempt(self, delivery: Delivery) -> str | None:
        """Try once; return None, or the code of what went wrong."""
        sender = self._senders.get(delivery.channel)
        if sender is None:
            return NOT_CONFIGURED
        quote = await asyncio.to_thread(self._repository.get, delivery.quote_id)
        if quote is None and delivery.event == "created":
            return None  # deleted meanwhile: nothing to tell, and no row to note it in
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await sender.send(delivery, quote)
        except DeliveryError as error:
            return error.code
        except TimeoutError:
            return "timeout"
        except Exception as error:  # noqa: BLE001 - one bad quote must not stop the others
            return type(error).__name__
        return None
