"""The sales desk: requests, their figures and notes, exports, and what could not be delivered.

Nothing here exists unless a password is set. The desk's cookie is the only one of the site.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, get_args

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.quotes.export import as_csv, as_json_text
from app.quotes.figures import figures_of
from app.quotes.office import Office
from app.quotes.quote import STATUSES, Note, Quote, Status, deleted_on
from app.quotes.request import NOT_IN_PAGES
from app.quotes.token import now
from app.storage.unavailable import StorageUnavailableError
from app.web.desk_session import has_session, is_configured
from app.web.render import Renderer

router = APIRouter(prefix="/desk", include_in_schema=False)

HOME: Final = "/desk"
PRIVATE: Final = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
MAX_NOTE: Final = 5_000
MAX_PAGE: Final = 10_000

Endpoint = Callable[[Request, Office], Awaitable[Response]]


def behind_login(
    path: str, methods: tuple[str, ...] = ("GET", "HEAD")
) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint that only somebody who is logged in reaches."""

    def register(endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            office: Office = request.app.state.office
            if not is_configured(office):
                raise HTTPException(HTTPStatus.NOT_FOUND)
            if not has_session(request, office):
                back = request.url.path if request.method in {"GET", "HEAD"} else HOME
                return RedirectResponse(f"{HOME}/login?next={back}", 303, headers=PRIVATE)
            try:
                return await endpoint(request, office)
            except StorageUnavailableError:
                later = {"Retry-After": "60"}
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, headers=later) from None

        router.add_api_route(path, guarded, methods=list(methods), name=f"desk{path}")
        return endpoint

    return register


@behind_login("")
async def listing(request: Request, office: Office) -> Response:
    """List requests, newest first, by text and status."""
    query = request.query_params
    text, status, page = (
        _shown(query.get("q", ""))[:200],
        _status(query.get("status")),
        _page_number(query),
    )
    found = await run_in_threadpool(office.repository.search, text, status, page)
    load = await run_in_threadpool(office.outbox.load)
    return show(
        request,
        "desk/list.html",
        rows=[(quote, figures_of(quote.sizing.result)) for quote in found.quotes],
        total=found.total,
        pages=found.pages,
        page=page,
        q=text,
        chosen=status,
        load=load,
    )


@behind_login("/quotes/{quote_id}")
async def one(request: Request, office: Office) -> Response:
    """Show one request with its frozen figures, notes and deliveries."""
    quote = await _quote(request, office)
    notes = await run_in_threadpool(office.repository.notes_of, quote.id)
    deliveries = await run_in_threadpool(office.outbox.of_quote, quote.id)
    return show(
        request,
        "desk/quote.html",
        quote=quote,
        figures=figures_of(quote.sizing.result),
        result=quote.sizing.result,
        notes=notes,
        deliveries=deliveries,
        deleted_on=deleted_on(quote, office.settings.quote_retention_days),
    )


@behind_login("/quotes/{quote_id}/json")
async def one_as_json(request: Request, office: Office) -> Response:
    """Hand one request over as a file."""
    quote = await _quote(request, office)
    return _file(f"{quote.reference}.json", "application/json", as_json_text([quote]))


@behind_login("/quotes/{quote_id}/status", ("POST",))
async def set_status(request: Request, office: Office) -> Response:
    """Say how far the desk is with a request."""
    quote = await _quote(request, office)
    async with request.form() as form:
        status = _status(form.get("status"))
    if status is None:
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY)
    await run_in_threadpool(office.repository.set_status, quote.id, status)
    return _back_to(quote)


@behind_login("/quotes/{quote_id}/notes", ("POST",))
async def add_note(request: Request, office: Office) -> Response:
    """Write a note beside a request."""
    quote = await _quote(request, office)
    async with request.form() as form:
        text = _shown(str(form.get("text", "")).replace("\r\n", "\n")).strip()
    if len(text) > MAX_NOTE:
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY)
    if text:
        note = Note(now(), text)
        await run_in_threadpool(office.repository.add_note, quote.id, note)
    return _back_to(quote)


@behind_login("/quotes/{quote_id}/delete", ("GET", "HEAD", "POST"))
async def delete(request: Request, office: Office) -> Response:
    """Ask before a request is deleted; delete it when that was confirmed."""
    quote = await _quote(request, office)
    if request.method != "POST":
        return show(request, "desk/delete.html", quote=quote)
    await run_in_threadpool(office.repository.forget, (quote.id,), now())
    office.wake()
    return RedirectResponse(HOME, 303, headers=PRIVATE)


@behind_login("/export.csv")
async def export_csv(_request: Request, office: Office) -> Response:
    """Hand all requests over as a table."""
    quotes = await run_in_threadpool(office.repository.everything)
    return _file("quotes.csv", "text/csv", await run_in_threadpool(as_csv, quotes))


@behind_login("/export.json")
async def export_json(_request: Request, office: Office) -> Response:
    """Hand all requests over with answers and results."""
    quotes = await run_in_threadpool(office.repository.everything)
    return _file("quotes.json", "application/json", await run_in_threadpool(as_json_text, quotes))


@behind_login("/deliveries")
async def deliveries(request: Request, office: Office) -> Response:
    """Show what was given up, and how much is waiting."""
    letters = await run_in_threadpool(office.outbox.dead_letters)
    load = await run_in_threadpool(office.outbox.load)
    return show(request, "desk/deliveries.html", letters=letters, load=load)


@behind_login("/deliveries/{delivery_id:int}/retry", ("POST",))
async def retry(request: Request, office: Office) -> Response:
    """Try something again that was given up."""
    delivery_id = request.path_params["delivery_id"]
    if not await run_in_threadpool(office.outbox.revive, delivery_id, now()):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    office.wake()
    return RedirectResponse(f"{HOME}/deliveries", 303, headers=PRIVATE)


def show(
    request: Request,
    template: str,
    *,
    status: int = HTTPStatus.OK,
    **context: Any,  # noqa: ANN401 - what templates show
) -> Response:
    """Answer with a page of the desk."""
    renderer: Renderer = request.app.state.renderer
    # the desk has one address for both languages
    return renderer.page(
        request,
        template,
        status=int(status),
        headers=PRIVATE,
        **{"alternates": (), "desk": HOME, "statuses": STATUSES, **context},
    )


async def _quote(request: Request, office: Office) -> Quote:
    quote_id = request.path_params["quote_id"]
    quote = await run_in_threadpool(office.repository.get, quote_id)
    if quote is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return quote


def _back_to(quote: Quote) -> Response:
    return RedirectResponse(f"{HOME}/quotes/{quote.id}", 303, headers=PRIVATE)


def _file(name: str, media_type: str, text: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return Response(
        text, media_type=media_type, headers={**PRIVATE, "Content-Disposition": disposition}
    )


def _shown(text: str) -> str:
    """Leave out what no page can show and no database need keep."""
    return NOT_IN_PAGES.sub("", text)


def _status(text: object) -> Status | None:
    return next((each for each in get_args(Status) if each == text), None)


def _page_number(query: Any) -> int:  # noqa: ANN401 - Starlette's mapping
    text = query.get("page", "1")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1  # noqa: PLR2004
    return min(max(number, 1), MAX_PAGE)
