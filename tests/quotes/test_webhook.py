"""Webhooks are signed, repeatable, described, and go to public addresses only."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import jsonschema
import pytest

from app.main import ROOT
from app.quotes.delivery.channel import DeliveryError
from app.quotes.delivery.webhook import Webhook, is_public, signature
from app.quotes.outbox import Delivery
from tests.quotes.conftest import CREATED, Draft
from tests.quotes.peers import Receiver

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "quote-event.schema.json").read_text())
SECRET = "a secret of the vendor"  # noqa: S105 - of a test


def _delivery(event: str = "created") -> Delivery:
    return Delivery(1, "q" * 32, "482-719-536", "webhook", event, "k" * 32, CREATED, 1)  # type: ignore[arg-type]


def test_an_event_fits_its_schema_and_carries_the_figures(receiver: Receiver, draft: Draft) -> None:
    """A new quote arrives as docs/quote-event.schema.json says, with the whole result."""
    quote = draft()
    asyncio.run(Webhook(receiver.url, SECRET, private=True).send(_delivery(), quote))
    (post,) = receiver.posts
    jsonschema.validate(post.event, SCHEMA)
    assert post.event["quote"]["result"] == quote.sizing.result
    assert post.headers["Sizing-Event"] == "quote.created"
    assert post.headers["Host"] == f"127.0.0.1:{receiver.port}"


def test_a_deletion_holds_nobody(receiver: Receiver) -> None:
    """The news of a deletion names the request and no person."""
    asyncio.run(Webhook(receiver.url, SECRET, private=True).send(_delivery("deleted"), None))
    (post,) = receiver.posts
    jsonschema.validate(post.event, SCHEMA)
    assert set(post.event) == {"event", "id", "reference", "occurred_at"}


@pytest.mark.parametrize("change", [{"event": "x"}, {"quote": {}}, {"more": 1}, {"id": None}])
def test_the_schema_refuses_other_events(draft: Draft, change: dict[str, Any]) -> None:
    """The schema notices a wrong event, a hollow quote and a name it does not know."""
    good = {"event": "quote.deleted", "id": "q", "reference": "482-719-536", "occurred_at": "t"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **change}, SCHEMA)


def test_a_repeated_delivery_is_recognisable_and_signed(receiver: Receiver, draft: Draft) -> None:
    """Sent twice, key and body are equal; the signature is HMAC-SHA256 over time and body."""
    quote, hook = draft(), Webhook(receiver.url, SECRET, private=True)
    for _ in range(2):
        asyncio.run(hook.send(_delivery(), quote))
    first, second = receiver.posts
    assert (first.key, first.body) == (second.key, second.body)
    stamp, _, given = first.headers["Sizing-Signature"].partition(",")
    assert given == f"v1={signature(SECRET, int(stamp.removeprefix('t=')), first.body)}"
    assert given != f"v1={signature('another', int(stamp.removeprefix('t=')), first.body)}"


def test_the_signature_is_the_documented_one() -> None:
    """A fixed example: what `printf '1.{}' | openssl dgst -sha256 -hmac key` prints."""
    printed = "1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224"
    assert signature("key", 1, b"{}") == printed


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",  # noqa: S104
        "100.64.0.1", "224.0.0.1", "::1", "::", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1",
        "ff02::1", "192.0.2.1", "2001:db8::1",
    ],
)  # fmt: skip
def test_private_addresses_are_no_receivers(address: str) -> None:
    """Loopback, private, link-local, shared, multicast, documentation: none is public."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:220:1::1", "::ffff:8.8.8.8"])
def test_public_addresses_are_receivers(address: str) -> None:
    """Addresses of the internet pass."""
    assert is_public(address)


def test_a_private_receiver_needs_a_setting(receiver: Receiver, draft: Draft) -> None:
    """Without the setting nothing is even connected."""
    hook = Webhook(receiver.url, SECRET, private=False)
    with pytest.raises(DeliveryError) as caught:
        asyncio.run(hook.send(_delivery(), draft()))
    assert (caught.value.code, receiver.posts) == ("private_address", [])


def test_one_private_address_among_public_ones_is_enough(
    monkeypatch: pytest.MonkeyPatch, draft: Draft
) -> None:
    """A name that leads to a public and a private address is refused."""
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        for address in ("93.184.215.14", "10.0.0.1")
    ]

    async def looked_up(*_: object, **__: object) -> list[Any]:
        return found

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", looked_up)
    hook = Webhook("https://crm.example/hook", SECRET, private=False)
    with pytest.raises(DeliveryError, match="private_address"):
        asyncio.run(hook.send(_delivery(), draft()))


def test_a_redirect_is_no_success(receiver: Receiver, draft: Draft) -> None:
    """Nobody is followed elsewhere, and anything but 2xx is tried again."""
    receiver.mood = "refuse"
    with pytest.raises(DeliveryError, match="http_503"):
        asyncio.run(Webhook(receiver.url, SECRET, private=True).send(_delivery(), draft()))
