"""Programs that the crash tests start and kill: the service, and a courier alone.

The leases are short, so that what a killed process held is taken over within seconds.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from itertools import count

from fastapi import FastAPI

from app.main import create_app
from app.quotes import outbox
from app.quotes.delivery import courier as courier_module
from app.quotes.delivery.courier import Courier
from app.quotes.delivery.webhook import Webhook
from app.quotes.repository import Repository
from app.storage.engine import Storage
from app.telemetry.metrics import Metrics

LEASE_SECONDS = 10


def impatient() -> None:
    """Shorten lease and patience for this process."""
    outbox.LEASE = timedelta(seconds=LEASE_SECONDS)  # type: ignore[misc]
    courier_module.SEND_SECONDS = LEASE_SECONDS / 2  # type: ignore[misc]
    courier_module.IDLE_SECONDS = 0.2  # type: ignore[misc]


def create() -> FastAPI:
    """Return the service; for `uvicorn --factory`."""
    impatient()
    return create_app()


async def deliver(database: str, receiver: str) -> None:
    """Deliver webhooks until none is waiting, then say how many this process delivered."""
    storage = Storage(database)
    mine = Metrics()
    boxes = outbox.Outbox(storage)
    senders = {"webhook": Webhook(receiver, "secret", private=True)}
    courier = Courier(
        Repository(storage), boxes, senders, retry_seconds=1, retention_days=36500, metrics=mine
    )
    task = asyncio.create_task(courier.run())
    for _ in count():
        await asyncio.sleep(0.1)
        if not (await asyncio.to_thread(boxes.load)).waiting:
            break
    courier.stop()
    await task
    labels = {"channel": "webhook", "outcome": "delivered"}
    sys.stdout.write(
        f"{mine.registry.get_sample_value('sizing_deliveries_total', labels) or 0:g}\n"
    )


if __name__ == "__main__":
    asyncio.run(deliver(*sys.argv[1:]))
