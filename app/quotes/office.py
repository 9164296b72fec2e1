"""Everything the pages need of the quotes in one place, each part made when it is first used.

Importing this module imports no database driver, mail or HTTP library: the calculator starts
without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

import structlog

from app.catalog.vendors import Vendor
from app.quotes.quote import Quote
from app.quotes.spam import Limiter
from app.quotes.token import Signer, kept_key
from app.settings import Settings
from app.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from app.quotes.delivery.channel import Sender
    from app.quotes.delivery.courier import Courier
    from app.quotes.delivery.mail import Render
    from app.quotes.outbox import Outbox
    from app.quotes.repository import Repository, Saved
    from app.storage.engine import Storage

STOP_SECONDS: Final = 25.0
DESK_RATE: Final = "10/minute"


class Office:
    """The quotes of one instance."""

    def __init__(
        self, settings: Settings, vendor: Vendor, metrics: Metrics, *, render: Render,
        customer_link: Callable[[Quote], str], desk_link: Callable[[Quote], str | None],
    ) -> None:  # fmt: skip
        """Remember what the parts are made of; nothing is opened yet.

        Args:
            settings: of this instance.
            vendor: whose servers are asked for.
            metrics: counters.
            render: makes texts of templates.
            customer_link: where the sender finds a request.
            desk_link: where the desk finds it; None where there is no desk.
        """
        self.settings = settings
        self.vendor = vendor
        self.metrics = metrics
        self.limiter = Limiter(settings.quote_rate)
        self.desk_limiter = Limiter(DESK_RATE)
        self._render = render
        self._customer_link = customer_link
        self._desk_link = desk_link
        self._courier: Courier | None = None

    @cached_property
    def signer(self) -> Signer:
        """Signs forms, links and sessions."""
        keys = [key.get_secret_value() for key in self.settings.secret_keys]
        return Signer(keys or [kept_key(self.settings.data_dir)])

    @cached_property
    def storage(self) -> Storage:
        """The database."""
        from app.storage.engine import Storage  # noqa: PLC0415 - see the module's docstring

        url = self.settings.database_url
        file = self.settings.data_dir.absolute() / "quotes.sqlite3"
        return Storage(url.get_secret_value() if url else f"sqlite:///{file}")

    @cached_property
    def repository(self) -> Repository:
        """The quotes."""
        from app.quotes.repository import Repository  # noqa: PLC0415 - see above

        return Repository(self.storage)

    @cached_property
    def outbox(self) -> Outbox:
        """What must be told of them."""
        from app.quotes.outbox import Outbox  # noqa: PLC0415 - see above

        return Outbox(self.storage)

    @property
    def mails_are_sent(self) -> bool:
        """Whether mails go anywhere: to a server, or to a developer's console."""
        return bool(self.settings.smtp_host) or not self.settings.production

    @property
    def channels(self) -> tuple[str, ...]:
        """Whom a new quote is told to."""
        mails = ("desk_mail", "customer_mail") if self.mails_are_sent else ()
        return (*mails, "webhook") if self.settings.webhook_url else mails

    def keep(self, draft: Quote) -> Saved:
        """Store a quote with its news. Raises StorageUnavailableError: nothing was stored."""
        return self.repository.save(draft, self.channels)

    def wake(self) -> None:
        """Let what was just stored be delivered now, not at the next look."""
        if self._courier is not None:
            self._courier.wake()

    def senders(self) -> dict[str, Sender]:
        """Make the ways to deliver that are configured."""
        from app.quotes.delivery import mail, smtp  # noqa: PLC0415 - see above
        from app.quotes.delivery.webhook import Webhook  # noqa: PLC0415 - see above

        settings, vendor = self.settings, self.vendor
        head = mail.Letterhead(
            vendor_name=vendor.name,
            sender=settings.mail_from or vendor.email,
            desk_email=settings.desk_email or vendor.email,
            desk_language=settings.desk_language,
            retention_days=settings.quote_retention_days,
            base_url=settings.base_url,
        )
        links = mail.Links(self._customer_link, self._desk_link)
        found: dict[str, Sender] = {}
        if self.mails_are_sent:
            transport = smtp.SmtpTransport(settings) if settings.smtp_host else smtp.print_mail
            for template in ("desk", "customer"):
                found[f"{template}_mail"] = mail.Mails(
                    template, head, self._render, links, transport=transport
                )
        if settings.webhook_url and settings.webhook_secret:
            secret = settings.webhook_secret.get_secret_value()
            found["webhook"] = Webhook(
                settings.webhook_url, secret, private=settings.webhook_private
            )
        return found

    def courier(self) -> Courier:
        """Make a worker."""
        from app.quotes.delivery.courier import Courier  # noqa: PLC0415 - see above

        return Courier(
            self.repository,
            self.outbox,
            self.senders(),
            retry_seconds=self.settings.retry_seconds,
            retention_days=self.settings.quote_retention_days,
            metrics=self.metrics,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Deliver and forget in the background while the service runs."""
        task = asyncio.create_task(self._work()) if self.settings.deliver else None
        try:
            yield
        finally:
            if task is not None:
                await self._finish(task)
            if "storage" in self.__dict__:
                self.storage.close()

    async def _finish(self, task: asyncio.Task[None]) -> None:
        """Let what is being sent be sent, within limits."""
        if self._courier is None:
            task.cancel()
        else:
            self._courier.stop()
        _, late = await asyncio.wait({task}, timeout=STOP_SECONDS)
        for each in late:
            each.cancel()

    async def _work(self) -> None:
        if self.settings.production and not self.channels:
            structlog.get_logger().warning("nobody is told of quote requests", channel="none")
        # in a thread: the imports take half a second
        self._courier = await asyncio.to_thread(self.courier)
        await self._courier.run()
