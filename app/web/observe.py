"""Every request gets an id, a log line and a count; a failure inside becomes a page."""

import re
import time
import uuid
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.telemetry.logging import frames_of
from app.telemetry.metrics import Metrics
from app.web.assets import MOUNT
from app.web.security import Refusal

REQUEST_ID: Final = re.compile(r"[0-9A-Za-z-]{8,64}")
UNMATCHED: Final = "unmatched"
# Nobody is left to answer: the connection broke while the body came. The number is nginx's.
CLIENT_GONE: Final = 499
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observe:
    """Outermost but for the headers, so that nothing escapes the log or leaves without a page."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, refuse: Refusal, production: bool
    ) -> None:
        """Remember where to count and how a failure is shown.

        Args:
            app: the application inside.
            metrics: the counters.
            refuse: makes the page for status 500.
            production: False raises the failure again after the answer, for console and tests.
        """
        self.app = app
        self.metrics = metrics
        self.refuse = refuse
        self.production = production

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, then log and count by route template."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 0
        request_id = _request_id(Headers(scope=scope))
        started = time.perf_counter()

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self.app(scope, receive, send_observed)
            except ClientDisconnect:
                status = status or CLIENT_GONE
            except Exception as error:
                log = structlog.get_logger()
                # exception() would log the message, which may quote a person
                log.error("failed", error=type(error).__name__, frames=frames_of(error))  # noqa: TRY400
                if not status:
                    await self._failure(Request(scope))(scope, receive, send_observed)
                if not self.production:
                    raise
            finally:
                self._record(scope, status, time.perf_counter() - started)

    def _failure(self, request: Request) -> Response:
        try:
            return self.refuse(request, 500)
        except Exception as error:  # noqa: BLE001 - the last resort when the error page itself fails
            structlog.get_logger().error(
                "error page failed", error=type(error).__name__, frames=frames_of(error)
            )
            return PlainTextResponse("Internal Server Error\n", 500)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        fallback = MOUNT if scope["path"].startswith(f"{MOUNT}/") else UNMATCHED
        route = getattr(scope.get("route"), "path", fallback)
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self.metrics.observe(route=route, method=method, status=status, seconds=seconds)
        structlog.get_logger().info(
            "answered",
            route=route,
            method=method,
            status=status,
            duration_ms=round(seconds * 1000, 1),
        )


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
