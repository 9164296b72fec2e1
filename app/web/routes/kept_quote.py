"""The sender's own link to a stored request: see it, take it along, delete it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.catalogue import Catalogue
from app.quotes.figures import figures_of
from app.quotes.office import Office
from app.quotes.quote import Quote, as_json, deleted_on
from app.quotes.token import now
from app.storage.unavailable import StorageUnavailableError
from app.web.locale import page, place_of
from app.web.quote_links import KEPT
from app.web.render import Renderer

router = APIRouter()

PRIVATE: Final = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


async def show(request: Request) -> Response:
    """Show a request to whoever has its link."""
    quote = await _opened(request)
    if quote is None:
        return _page(request, "quote/gone.html", status=HTTPStatus.NOT_FOUND, deleted=False)
    office: Office = request.app.state.office
    return _page(
        request,
        "quote/kept.html",
        quote=quote,
        figures=figures_of(quote.sizing.result),
        deleted_on=deleted_on(quote, office.settings.quote_retention_days),
        export_href=_path(request, "quote_export"),
        delete_href=_path(request, "quote_delete"),
    )


async def export(request: Request) -> Response:
    """Hand a request over as a file."""
    quote = await _opened(request)
    if quote is None:
        return _page(request, "quote/gone.html", status=HTTPStatus.NOT_FOUND, deleted=False)
    text = json.dumps(as_json(quote), ensure_ascii=False, indent=2)
    name = f'attachment; filename="{quote.reference}.json"'
    headers = {**PRIVATE, "Content-Disposition": name}
    return Response(text, media_type="application/json", headers=headers)


async def delete(request: Request) -> Response:
    """Ask before a request is deleted; delete it when that was confirmed."""
    quote = await _opened(request)
    if quote is None:
        return _page(request, "quote/gone.html", status=HTTPStatus.NOT_FOUND, deleted=False)
    if request.method != "POST":
        return _page(
            request,
            "quote/delete.html",
            quote=quote,
            own_link=_path(request, KEPT),
            delete_href=_path(request, "quote_delete"),
        )
    office: Office = request.app.state.office
    await run_in_threadpool(office.repository.forget, (quote.id,), now())
    office.wake()
    return _page(request, "quote/gone.html", deleted=True)


async def _opened(request: Request) -> Quote | None:
    """Return the request that a link opens; None if it opens nothing."""
    office: Office = request.app.state.office
    quote_id = request.path_params["quote_id"]
    if not office.signer.opens(request.query_params.get("token", ""), quote_id):
        return None
    try:
        return await run_in_threadpool(office.repository.get, quote_id)
    except StorageUnavailableError:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "60"}) from None


def _path(request: Request, name: str) -> str:
    renderer: Renderer = request.app.state.renderer
    token = {"token": request.query_params.get("token", "")}
    return renderer.path_to(place_of(request), name, token, **request.path_params)


def _page(
    request: Request,
    template: str,
    *,
    status: int = HTTPStatus.OK,
    **context: Any,  # noqa: ANN401 - what templates show
) -> Response:
    renderer: Renderer = request.app.state.renderer
    catalogue: Catalogue = request.app.state.catalogue
    return renderer.page(
        request, template, status=int(status), headers=PRIVATE, vendor=catalogue.vendor, **context
    )


page(router, KEPT, de="/angebot/{quote_id}", en="/quote/{quote_id}", embeddable=False)(show)
page(
    router,
    "quote_export",
    de="/angebot/{quote_id}/export",
    en="/quote/{quote_id}/export",
    embeddable=False,
)(export)
page(
    router,
    "quote_delete",
    de="/angebot/{quote_id}/loeschen",
    en="/quote/{quote_id}/delete",
    methods=("GET", "HEAD", "POST"),
    embeddable=False,
)(delete)
