"""News for a program of the vendor's, such as a CRM: signed, repeatable, to public addresses only.

The body is described by docs/quote-event.schema.json, the headers by docs/howto/quotes.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import socket
import ssl
import time
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from app.quotes.delivery.channel import DeliveryError
from app.quotes.outbox import Delivery
from app.quotes.quote import Quote, as_json

TIMEOUT_SECONDS: Final = 20.0
SIGNATURE: Final = "Sizing-Signature"
EVENT: Final = "Sizing-Event"
KEY: Final = "Idempotency-Key"


class Webhook:
    """The sender of webhooks."""

    def __init__(self, url: str, secret: str, *, private: bool) -> None:
        """Remember the receiver.

        Args:
            url: where to post.
            secret: key of the signature.
            private: whether the address may be a private one.
        """
        self._url = url
        self._secret = secret
        self._private = private

    async def send(self, delivery: Delivery, quote: Quote | None) -> None:
        """Post the event; any answer of 200 to 299 counts as taken. Raises DeliveryError."""
        import httpx  # noqa: PLC0415 - only where there is a webhook

        body = json.dumps(event_body(delivery, quote), ensure_ascii=False).encode()
        url = httpx.URL(self._url)
        # the number that was checked, so that a second look-up cannot lead elsewhere
        pinned = url.copy_with(host=await self._address())
        try:
            async with (
                httpx.AsyncClient(
                    timeout=TIMEOUT_SECONDS, trust_env=False, verify=self._trust
                ) as client,
                # streamed, so that nobody can fill our memory with an answer
                client.stream(
                    "POST",
                    pinned,
                    content=body,
                    headers={"Host": url.netloc.decode(), **self._headers(delivery, body)},
                    extensions={"sni_hostname": url.host},
                ) as answer,
            ):
                status = answer.status_code
        except httpx.HTTPError as error:
            raise DeliveryError(type(error).__name__) from None
        if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's "successful"
            raise DeliveryError(f"http_{status}")

    def _headers(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        stamp = int(time.time())
        return {
            "Content-Type": "application/json",
            "User-Agent": "vllm-sizing",
            EVENT: f"quote.{delivery.event}",
            KEY: delivery.idempotency_key,
            SIGNATURE: f"t={stamp},v1={signature(self._secret, stamp, body)}",
        }

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """The authorities we trust; kept, as reading them takes longer than a delivery."""
        return ssl.create_default_context()

    async def _address(self) -> str:
        """Look the receiver up. Raises DeliveryError if any of its addresses is not allowed."""
        parts = urlsplit(self._url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        except OSError:
            raise DeliveryError("unknown_host") from None
        addresses = [str(each[4][0]) for each in found]
        if not self._private and not all(is_public(each) for each in addresses):
            raise DeliveryError("private_address")
        return addresses[0]


def event_body(delivery: Delivery, quote: Quote | None) -> dict[str, Any]:
    """Return what a webhook says; equal each time the same delivery is tried."""
    body: dict[str, Any] = {
        "event": f"quote.{delivery.event}",
        "id": delivery.quote_id,
        "reference": delivery.reference,
        "occurred_at": delivery.created_at.isoformat(),
    }
    if quote is not None:
        body["quote"] = {
            name: value for name, value in as_json(quote).items() if name not in {"id", "status"}
        }
    return body


def signature(secret: str, stamp: int, body: bytes) -> str:
    """Return the HMAC-SHA256 of `STAMP.BODY` in hexadecimal digits."""
    signed = str(stamp).encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    checked = mapped or parsed
    return checked.is_global and not checked.is_multicast
