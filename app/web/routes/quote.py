"""Asking for a quote: the form, what was received, and the sender's own link to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.quotes.figures import figures_of
from app.quotes.office import Office
from app.quotes.reference import new_reference
from app.quotes.request import Contact, QuoteForm, read_quote_form
from app.quotes.spam import TRAP_FIELD, too_fast
from app.quotes.token import FormToken, TokenExpiredError, TokenInvalidError, new_id, now
from app.storage.unavailable import StorageUnavailableError
from app.web.case import Case, read_case
from app.web.locale import page
from app.web.quote_draft import draft_quote
from app.web.quote_links import customer_link
from app.web.render import Renderer
from app.web.security import BODY_BYTES_BY_PATH
from app.web.view_models.answered import answered_before

router = APIRouter()

TOKEN_FIELD: Final = "form_token"  # noqa: S105 - the name of a field
FORM_LIMITS: Final = {
    "max_fields": 40,
    "max_files": 0,
    "max_part_size": BODY_BYTES_BY_PATH["/en/quote"],
}
# what somebody entered is kept by no cache; the empty form is, so that Back finds it filled in
PRIVATE: Final = {"Cache-Control": "no-store"}
EMPTY: Final = {"Cache-Control": "private, no-cache"}


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a form is shown again although nothing in it is wrong.

    Codes: `too_fast`, `expired` (also for a token that is not ours), `limited`, `unavailable`.
    """

    code: str
    status: int = HTTPStatus.UNPROCESSABLE_ENTITY
    wait_seconds: int = 0


async def ask(request: Request) -> Response:
    """Show the form beside the figures; without a result to send, go to the workbench."""
    case = read_case(request)
    if case.view() is None:
        return RedirectResponse(case.path("workbench", case.form.pairs()), 303)
    empty = QuoteForm(Contact(), (), {})
    return _form(case, empty, _office(request).signer.form_token())


async def send(request: Request) -> Response:
    """Store a request that was filled in, or show the form again with everything kept."""
    case, office = read_case(request), _office(request)
    if case.view() is None:
        return RedirectResponse(case.path("workbench", case.form.pairs()), 303)
    async with request.form(**FORM_LIMITS) as fields:
        texts = {name: text for name, text in fields.items() if isinstance(text, str)}
    if texts.get(TRAP_FIELD):
        office.metrics.quote("trapped")
        # a robot learns nothing: the same answer, and nothing behind it
        return _sent(case, new_id(), new_reference())
    sent, token_text = read_quote_form(texts), texts.get(TOKEN_FIELD, "")
    try:
        token = office.signer.read_form_token(token_text)
    except (TokenExpiredError, TokenInvalidError) as error:
        expired = isinstance(error, TokenExpiredError)
        office.metrics.quote("expired" if expired else "tampered")
        return _form(case, sent, office.signer.form_token(), Hindrance("expired"))
    if sent.problems:
        office.metrics.quote("invalid")
        return _form(case, sent, token_text)
    try:
        return await _keep(case, sent, token, token_text)
    except StorageUnavailableError:
        office.metrics.quote("unavailable")
        hindrance = Hindrance("unavailable", HTTPStatus.SERVICE_UNAVAILABLE, 60)
        return _form(case, sent, token_text, hindrance)


async def _keep(case: Case, sent: QuoteForm, token: FormToken, token_text: str) -> Response:
    """Store a good form once. Raises StorageUnavailableError."""
    office = _office(case.request)
    earlier = await run_in_threadpool(office.repository.of_form, token.form_id)
    if earlier is not None:
        office.metrics.quote("repeated")
        return _sent(case, earlier.id, earlier.reference, again=True)
    if too_fast(token, now(), office.settings.quote_min_seconds):
        office.metrics.quote("too_fast")
        return _form(case, sent, token_text, Hindrance("too_fast"))
    if wait := _seconds_to_wait(case.request, office):
        office.metrics.quote("limited")
        hindrance = Hindrance("limited", HTTPStatus.TOO_MANY_REQUESTS, wait)
        return _form(case, sent, token_text, hindrance)
    saved = await run_in_threadpool(office.keep, draft_quote(case, sent.contact, token))
    office.metrics.quote("stored" if saved.is_new else "repeated")
    office.wake()
    return _sent(case, saved.quote.id, saved.quote.reference, again=not saved.is_new)


async def confirm(request: Request) -> Response:
    """Say that a request was received, and what it was; for an hour."""
    case, office = read_case(request), _office(request)
    context: dict[str, Any] = {"reference": "", "quote": None}
    try:
        confirmation = office.signer.read_confirmation(request.query_params.get("token", ""))
    except (TokenExpiredError, TokenInvalidError):
        return _page(case, "quote/sent.html", status=HTTPStatus.GONE, **context)
    context["reference"] = confirmation.reference
    try:
        kept = await run_in_threadpool(office.repository.get, confirmation.quote_id)
    except StorageUnavailableError:
        kept = None  # it was stored; only showing it again must wait
    if kept is not None:
        renderer: Renderer = request.app.state.renderer
        own_link = customer_link(renderer, office.settings.base_url, office.signer, kept)
        context.update(quote=kept, figures=figures_of(kept.sizing.result), own_link=own_link)
    return _page(
        case,
        "quote/sent.html",
        again="again" in request.query_params,
        anew=case.path("quote", case.form.pairs()),
        mails_are_sent=office.mails_are_sent,
        **context,
    )


def _seconds_to_wait(request: Request, office: Office) -> int:
    """Count the request; a counter that fails lets people through."""
    address = request.client.host if request.client else ""
    try:
        return office.limiter.seconds_to_wait(address)
    except Exception as error:  # noqa: BLE001 - whatever it is, a quote is worth more
        office.metrics.quote("limiter_failed")
        structlog.get_logger().warning("rate limiter failed", error=type(error).__name__)
        return 0


def _sent(case: Case, quote_id: str, reference: str, *, again: bool = False) -> Response:
    token = _office(case.request).signer.confirmation(quote_id, reference)
    mark = [("again", "1")] if again else []
    pairs = [("token", token), *mark, *case.form.pairs()]
    return RedirectResponse(case.path("quote_sent", pairs), 303, headers=PRIVATE)


def _form(
    case: Case, sent: QuoteForm, form_token: str, hindrance: Hindrance | None = None
) -> Response:
    status: int = HTTPStatus.OK
    if sent.problems:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    headers = dict(PRIVATE if sent.entered else EMPTY)
    if hindrance is not None:
        status = hindrance.status
        if hindrance.wait_seconds:
            headers["Retry-After"] = str(hindrance.wait_seconds)
    answered = answered_before(
        None, case.answers, case.catalogue,
        lambda code: case.path(code, [*case.form.pairs(), ("from", "check")]),
    )  # fmt: skip
    return _page(
        case,
        "quote/request.html",
        status=status,
        headers=headers,
        r=case.view(),
        answered=answered,
        sent=sent,
        form_token=form_token,
        hindrance=hindrance.code if hindrance else "",
        wait_minutes=math.ceil(hindrance.wait_seconds / 60) if hindrance else 0,
        action=case.path("quote", case.form.pairs()),
        retention_days=_office(case.request).settings.quote_retention_days,
    )


def _page(
    case: Case,
    template: str,
    *,
    status: int = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
    **context: Any,  # noqa: ANN401 - what templates show
) -> Response:
    renderer: Renderer = case.request.app.state.renderer
    return renderer.page(
        case.request,
        template,
        status=int(status),
        headers=headers or PRIVATE,
        **case.context(vendor=case.catalogue.vendor, **context),
    )


def _office(request: Request) -> Office:
    office: Office = request.app.state.office
    return office


page(router, "quote", de="/angebot", en="/quote")(ask)
page(router, "quote_send", de="/angebot", en="/quote", methods=("POST",))(send)
page(router, "quote_sent", de="/angebot/gesendet", en="/quote/sent")(confirm)
