"""Failures as answers: a page or fragment in the page's language, JSON below /api."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.web.render import Renderer
from app.web.security import body_limit_bytes

API: Final = "/api/"
TEMPLATE: Final = "errors/error.html"
# htmx swaps error bodies too; the address bar keeps the last address that worked
KEEP_ADDRESS: Final[Mapping[str, str]] = {"HX-Push-Url": "false", "Cache-Control": "no-store"}


def is_api(request: Request) -> bool:
    """Whether a program asks, which wants JSON."""
    return str(request.scope["path"]).startswith(API)


def error_response(
    request: Request, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for a status: a JSON object below /api, else a translated page.

    Args:
        request: decides between JSON, page and fragment, and the language.
        status: HTTP status, 4xx or 5xx.
        headers: further headers, such as Allow or Retry-After.
    """
    if is_api(request):
        reason = HTTPStatus(status)
        detail = {"loc": [], "msg": reason.phrase, "code": reason.name.lower()}
        return JSONResponse({"detail": [detail]}, status, dict(headers or {}))
    renderer: Renderer = request.app.state.renderer
    return renderer.page(
        request,
        TEMPLATE,
        block="error",
        status=status,
        headers={**KEEP_ADDRESS, **(headers or {})},
        error_status=status,
        body_limit_bytes=body_limit_bytes(request.url.path),
        request_id=structlog.contextvars.get_contextvars().get("request_id", ""),
    )


def install(app: FastAPI) -> None:
    """Register the handlers for refused and invalid requests."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
        return error_response(request, error.status_code, error.headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - see above
        if not is_api(request):
            return error_response(request, 422)
        return JSONResponse({"detail": [_detail(item) for item in error.errors()]}, 422)

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)


def _detail(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"loc": list(item["loc"]), "msg": item["msg"], "code": item["type"]}
