"""Real receivers that are down, slow, refuse or die: everything arrives once they are back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi import FastAPI

from app.quotes import outbox as outbox_module
from app.quotes.delivery import courier as courier_module
from app.quotes.delivery.channel import Sender
from app.quotes.delivery.courier import Courier
from app.quotes.delivery.smtp import SmtpTransport
from app.quotes.delivery.webhook import Webhook
from app.quotes.outbox import CHANNELS, Delivery, Outbox
from app.quotes.quote import Quote
from app.quotes.repository import Repository
from app.quotes.token import now
from app.settings import Settings
from app.storage.engine import Storage
from app.telemetry.metrics import Metrics
from tests.quotes.conftest import Draft
from tests.quotes.letters import mails
from tests.quotes.peers import MailServer, Mood, Receiver

pytestmark = pytest.mark.slow

QUOTES = 6
TOMORROW = timedelta(days=1)  # later than any wait
MISTREATED: tuple[Mood, ...] = ("refuse", "die", "die after taking it")


class Post:
    """An outbox of a few quotes, a courier, and the receivers it talks to."""

    def __init__(
        self, app: FastAPI, storage: Storage, mail_server: MailServer, receiver: Receiver
    ) -> None:
        """Put the parts together."""
        self.repository, self.outbox = Repository(storage), Outbox(storage)
        self.metrics = Metrics()
        settings = Settings(
            smtp_host="127.0.0.1", smtp_port=mail_server.port, smtp_transport="plain"
        )
        transport = SmtpTransport(settings)
        senders: dict[str, Sender] = {
            "desk_mail": mails("desk", app.state.renderer, transport),
            "customer_mail": mails("customer", app.state.renderer, transport),
            "webhook": Webhook(receiver.url, "secret", private=True),
        }
        self.courier = Courier(
            self.repository, self.outbox, senders,
            retry_seconds=0.1, retention_days=180, metrics=self.metrics,
        )  # fmt: skip

    def round(self, later: timedelta = TOMORROW) -> None:
        """Try everything that is due once."""

        async def all_channels() -> None:
            moment = now() + later
            for channel in CHANNELS:
                await self.courier.deliver_due(channel, moment)

        asyncio.run(all_channels())


@pytest.fixture
def post(
    app: FastAPI, sqlite: Storage, mail_server: MailServer, receiver: Receiver, draft: Draft
) -> Post:
    """Return an office with six quotes to tell."""
    post = Post(app, sqlite, mail_server, receiver)
    for number in range(QUOTES):
        post.repository.save(draft(email=f"person{number}@example.com"), CHANNELS)
    return post


def _all_arrived(mail_server: MailServer, receiver: Receiver) -> None:
    told = Counter(str(mail["To"]) for mail in mail_server.mails)
    assert told["sales@example.com"] >= QUOTES
    assert len(told) == QUOTES + 1
    assert len({mail["Message-ID"] for mail in mail_server.mails}) == 2 * QUOTES
    assert len({each.key for each in receiver.posts}) == QUOTES


def test_receivers_that_are_well_hear_everything_once(
    post: Post, mail_server: MailServer, receiver: Receiver
) -> None:
    """One mail to the desk, one to the customer, one webhook for each quote, and no second."""
    for _ in range(3):
        post.round()
    assert (len(mail_server.mails), len(receiver.posts)) == (2 * QUOTES, QUOTES)
    _all_arrived(mail_server, receiver)
    assert post.outbox.load().waiting == 0


def test_receivers_that_were_down_hear_everything_once(
    post: Post, mail_server: MailServer, receiver: Receiver
) -> None:
    """While nobody listens everything waits; afterwards everything arrives, nothing twice."""
    mail_server.stop()
    receiver.stop()
    post.round()
    assert post.outbox.load().waiting == 3 * QUOTES
    mail_server.start()
    receiver.start()
    post.round()
    assert (len(mail_server.mails), len(receiver.posts)) == (2 * QUOTES, QUOTES)
    _all_arrived(mail_server, receiver)


def test_slow_receivers_hear_everything_once(
    post: Post, mail_server: MailServer, receiver: Receiver
) -> None:
    """Slowness within the limits delays, and repeats nothing."""
    mail_server.mood = receiver.mood = "slow"
    post.round()
    assert (len(mail_server.mails), len(receiver.posts)) == (2 * QUOTES, QUOTES)


def test_receivers_that_are_too_slow_are_tried_again(
    post: Post, mail_server: MailServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes longer than allowed counts as failed, and is told again later."""
    monkeypatch.setattr(courier_module, "SEND_SECONDS", 0.1)
    mail_server.mood = receiver.mood = "slow"
    post.round()
    errors = Counter(row.last_error for row in _rows(post))
    assert errors["timeout"]
    assert errors.total() - errors["timeout"] == errors[None], "the others were told"
    monkeypatch.undo()
    mail_server.mood = receiver.mood = "well"
    post.round()
    _all_arrived(mail_server, receiver)


@pytest.mark.parametrize("mood", MISTREATED)
def test_receivers_that_misbehave_hear_everything_in_the_end(
    post: Post, mail_server: MailServer, receiver: Receiver, mood: Mood
) -> None:
    """Refused, cut off in the middle, or cut off after taking it: told again under the same key."""
    mail_server.mood = receiver.mood = mood
    for _ in range(2):
        post.round()
        assert post.outbox.load().waiting == 3 * QUOTES
    mail_server.mood = receiver.mood = "well"
    post.round()
    _all_arrived(mail_server, receiver)
    assert (post.outbox.load().waiting, post.outbox.load().dead) == (0, 0)


def _rows(post: Post) -> tuple[Delivery, ...]:
    found = post.repository.search().quotes
    return tuple(row for quote in found for row in post.outbox.of_quote(quote.id))


def test_an_error_is_noted_without_the_servers_words(post: Post, mail_server: MailServer) -> None:
    """A refusal is kept as a code; the server's text, which may quote an address, is not."""
    mail_server.mood = "refuse"
    post.round()
    errors = {row.channel: row.last_error for row in _rows(post)}
    assert errors["customer_mail"] == "smtp_550_recipient"
    assert errors["webhook"] is None


def test_a_slow_channel_holds_up_no_other(post: Post, receiver: Receiver) -> None:
    """While mails hang, webhooks are delivered."""

    class Hanging:
        """Never comes back."""

        async def send(self, _delivery: Delivery, _quote: Quote | None) -> None:
            """Wait for ever."""
            await asyncio.sleep(3600)

    post.courier._senders = {**post.courier._senders, "desk_mail": Hanging()}

    async def work() -> None:
        task = asyncio.create_task(post.courier.run())
        await _until(lambda: len(receiver.posts) == QUOTES)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())
    assert len(receiver.posts) == QUOTES


def test_stopping_lets_what_is_being_sent_be_sent(post: Post, receiver: Receiver) -> None:
    """A courier that is told to stop finishes its batch, marks it, and takes no other."""
    receiver.mood = "slow"

    async def work() -> None:
        task = asyncio.create_task(post.courier.run())
        await asyncio.sleep(0.2)
        post.courier.stop()
        await asyncio.wait_for(task, 10)

    asyncio.run(work())
    told = {row.idempotency_key for row in _rows(post) if row.delivered_at}
    assert {each.key for each in receiver.posts} <= told


def test_new_quotes_are_told_at_once(
    post: Post, receiver: Receiver, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waking the courier delivers without waiting for its next look."""
    monkeypatch.setattr(courier_module, "IDLE_SECONDS", 3600)

    async def work() -> None:
        task = asyncio.create_task(post.courier.run())
        await _until(lambda: len(receiver.posts) == QUOTES)
        await asyncio.sleep(0.2)
        post.repository.save(draft(), ("webhook",))
        post.courier.wake()
        await _until(lambda: len(receiver.posts) == QUOTES + 1)
        post.courier.stop()
        await task

    asyncio.run(work())


def test_a_fault_of_one_quote_stops_no_other(post: Post, receiver: Receiver) -> None:
    """What cannot even be written is noted by its kind, and the rest goes out."""
    healthy = post.courier._senders["webhook"]
    first = min(row.id for row in _rows(post) if row.channel == "webhook")

    class Faulty:
        """Fails for one delivery."""

        async def send(self, delivery: Delivery, quote: Quote | None) -> None:
            """Fail, or do as the real one."""
            if delivery.id == first:
                raise KeyError("ann@example.com")
            await healthy.send(delivery, quote)

    post.courier._senders = {**post.courier._senders, "webhook": Faulty()}
    post.round()
    assert len(receiver.posts) == QUOTES - 1
    (broken,) = [row for row in _rows(post) if row.id == first]
    assert broken.last_error == "KeyError"


def test_what_nobody_can_send_becomes_a_visible_dead_letter(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its last try a message is dead, counted for the monitoring, and not tried again."""
    monkeypatch.setattr(outbox_module, "MAX_ATTEMPTS", 2)
    receiver.mood = "refuse"
    for _ in range(4):
        post.round()
    assert post.outbox.load().dead == QUOTES
    assert b'sizing_outbox{state="dead"} 6.0' in post.metrics.exposition()
    assert {each.attempts for each in post.outbox.dead_letters()} == {2}


def test_a_channel_without_a_sender_waits(post: Post, mail_server: MailServer) -> None:
    """Mails that nobody may send just now are kept until somebody may."""
    post.courier._senders = {"webhook": post.courier._senders["webhook"]}
    post.round()
    assert mail_server.mails == []
    assert post.outbox.load().waiting == 2 * QUOTES


async def _until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition belongs to another process
            await asyncio.sleep(0.02)
