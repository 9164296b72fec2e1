"""Addresses of stored quotes, for mails and pages, and the office that sends those mails."""

from __future__ import annotations

from typing import Final

from app.catalog.vendors import Vendor
from app.quotes.office import Office
from app.quotes.quote import Quote
from app.quotes.token import Signer
from app.settings import Settings
from app.telemetry.metrics import Metrics
from app.web.locale import Place
from app.web.render import Renderer

KEPT: Final = "quote_kept"
DESK_QUOTE: Final = "/desk/quotes/{quote_id}"


def customer_link(renderer: Renderer, base_url: str, signer: Signer, quote: Quote) -> str:
    """Return the address where the sender sees, exports and deletes a request."""
    token = {"token": signer.link_token(quote.id)}
    return base_url + renderer.path_to(Place(quote.language), KEPT, token, quote_id=quote.id)


def make_office(settings: Settings, vendor: Vendor, metrics: Metrics, renderer: Renderer) -> Office:
    """Make the office of an instance; nothing is opened yet."""

    def customer(quote: Quote) -> str:
        return customer_link(renderer, settings.base_url, office.signer, quote)

    def desk(quote: Quote) -> str | None:
        if settings.desk_password_hash is None:
            return None
        return settings.base_url + DESK_QUOTE.format(quote_id=quote.id)

    office = Office(
        settings,
        vendor,
        metrics,
        render=renderer.text,
        customer_link=customer,
        desk_link=desk,
    )
    return office
