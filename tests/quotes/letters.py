"""How the tests of delivery write mails: the real templates, addresses of nobody."""

from __future__ import annotations

from app.quotes.delivery.mail import Letterhead, Links, Mails, Transport
from app.web.render import Renderer

HEAD = Letterhead(
    vendor_name="Example Servers",
    sender="wizard@example.com",
    desk_email="sales@example.com",
    desk_language="de",
    retention_days=180,
    base_url="https://sizing.example",
)
LINKS = Links(
    customer=lambda quote: f"https://sizing.example/own/{quote.id}",
    desk=lambda quote: f"https://sizing.example/desk/{quote.id}",
)


def mails(template: str, renderer: Renderer, transport: Transport) -> Mails:
    """Return the sender of one of the two mails."""
    return Mails(template, HEAD, renderer.text, LINKS, transport=transport)
