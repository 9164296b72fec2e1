"""Who is logged in at the desk: a signed cookie, strict, for some hours, sent to /desk alone."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.quotes.desk_login import fingerprint
from app.quotes.office import Office
from app.quotes.token import SESSION_LIFETIME

COOKIE: Final = "desk"
PATH: Final = "/desk"


def is_configured(office: Office) -> bool:
    """Whether this instance has a desk."""
    return office.settings.desk_password_hash is not None


def has_session(request: Request, office: Office) -> bool:
    """Whether a request comes from somebody who is logged in."""
    cookie = request.cookies.get(COOKIE, "")
    return bool(cookie) and office.signer.session_is_open(cookie, _fingerprint(office))


def open_session(response: Response, office: Office) -> None:
    """Log somebody in."""
    response.set_cookie(
        COOKIE,
        office.signer.session(_fingerprint(office)),
        max_age=int(SESSION_LIFETIME.total_seconds()),
        path=PATH,
        secure=office.settings.base_url.startswith("https://"),
        httponly=True,
        samesite="strict",
    )


def close_session(response: Response) -> None:
    """Log somebody out."""
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")


def _fingerprint(office: Office) -> str:
    secret = office.settings.desk_password_hash
    return fingerprint(secret.get_secret_value() if secret else "")
