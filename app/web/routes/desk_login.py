"""The door of the desk: log in, log out."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.quotes.desk_login import password_matches
from app.quotes.office import Office
from app.web.desk_session import close_session, is_configured, open_session
from app.web.routes.desk import HOME, PRIVATE, show

router = APIRouter(prefix="/desk", include_in_schema=False)

TEMPLATE: Final = "desk/login.html"
# back to a page of the desk and to nothing else
NEXT: Final = re.compile(r"/desk(/[A-Za-z0-9._-]+)*")


@router.api_route("/login", methods=["GET", "HEAD"])
async def ask(request: Request) -> Response:
    """Ask for the password."""
    _office(request)
    return show(request, TEMPLATE, next=_next(request.query_params.get("next")), wrong="")


@router.post("/login")
async def enter(request: Request) -> Response:
    """Open a session for whoever knows the password."""
    office = _office(request)
    async with request.form() as form:
        password, back = str(form.get("password", "")), _next(form.get("next"))
    address = request.client.host if request.client else ""
    if wait := office.desk_limiter.seconds_to_wait(address):
        response = show(
            request, TEMPLATE, status=HTTPStatus.TOO_MANY_REQUESTS, next=back, wrong="limited"
        )
        response.headers["Retry-After"] = str(wait)
        return response
    secret = office.settings.desk_password_hash
    known = secret.get_secret_value() if secret else ""
    if not await run_in_threadpool(password_matches, known, password):
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return show(request, TEMPLATE, status=status, next=back, wrong="password")
    entered = RedirectResponse(back, 303, headers=PRIVATE)
    open_session(entered, office)
    return entered


@router.post("/logout")
async def leave(request: Request) -> Response:
    """End the session."""
    _office(request)
    left = RedirectResponse(f"{HOME}/login", 303, headers=PRIVATE)
    close_session(left)
    return left


def _office(request: Request) -> Office:
    """Return the office. Raises HTTPException 404 where there is no desk."""
    office: Office = request.app.state.office
    if not is_configured(office):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return office


def _next(text: object) -> str:
    return text if isinstance(text, str) and NEXT.fullmatch(text) else HOME
