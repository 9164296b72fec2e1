"""What every answer promises a browser, and which requests are refused before they are read.

The policies are data, so that they can be read at a glance. All middleware is plain ASGI.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.locale import EMBED

Refusal = Callable[[Request, int], Response]

CONTENT_SECURITY_POLICY: Final[Mapping[str, str]] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
STRICT_TRANSPORT: Final = "max-age=31536000"

MIB: Final = 1 << 20
MAX_PATH_BYTES: Final = 1_024
MAX_QUERY_BYTES: Final = 8_192
MAX_BODY_BYTES: Final = 64 << 10
# A request body may be larger only where text is pasted (path without language and frame).
BODY_BYTES_BY_PATH: Final[Mapping[str, int]] = {
    "/api/v1/start-log": 5 * MIB,
    "/api/v1/metrics": MIB,
    "/api/v1/sizing": MIB,
    # a pasted config.json, sent as it is (multipart) and not encoded
    "/de/config": MIB,
    "/en/config": MIB,
    "/embed/de/config": MIB,
    "/embed/en/config": MIB,
    # a start log, or two metrics pages, sent as they are (multipart)
    "/de/log": 6 * MIB,
    "/en/log": 6 * MIB,
    "/embed/de/log": 6 * MIB,
    "/embed/en/log": 6 * MIB,
    "/de/metriken": 3 * MIB,
    "/en/metrics": 3 * MIB,
    "/embed/de/metriken": 3 * MIB,
    "/embed/en/metrics": 3 * MIB,
    # a quote form may carry a start log, which takes up to three times its size in a form
    "/de/angebot": 2 * MIB,
    "/en/quote": 2 * MIB,
    "/embed/de/angebot": 2 * MIB,
    "/embed/en/quote": 2 * MIB,
}
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def embeddable(path: str) -> bool:
    """Whether a path belongs to the pages that other sites may show in a frame."""
    return path.startswith(f"{EMBED}/")


def content_security_policy(path: str, frame_ancestors: tuple[str, ...]) -> str:
    """Return the policy of a path; only below /embed may the listed origins frame it."""
    policy = dict(CONTENT_SECURITY_POLICY)
    if embeddable(path):
        policy["frame-ancestors"] = " ".join(("'self'", *frame_ancestors))
    return "; ".join(f"{directive} {sources}" for directive, sources in policy.items())


class SecurityHeaders:
    """Put the policies on every answer."""

    def __init__(self, app: ASGIApp, *, frame_ancestors: tuple[str, ...]) -> None:
        """Remember who may frame /embed pages."""
        self.app = app
        self.frame_ancestors = frame_ancestors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers when the answer starts."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), scope)
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _add(self, headers: MutableHeaders, scope: Scope) -> None:
        path = scope["path"]
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers["Content-Security-Policy"] = content_security_policy(path, self.frame_ancestors)
        if embeddable(path):
            del headers["Cross-Origin-Opener-Policy"]
        else:
            headers["X-Frame-Options"] = "DENY"
        if embeddable(path) or path.startswith("/static/"):
            # other sites load embed.js and show /embed pages
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        if scope["scheme"] == "https":
            headers["Strict-Transport-Security"] = STRICT_TRANSPORT


class SizeLimits:
    """Refuse addresses above 8 kB with a plain 414 and bodies above their limit with 413."""

    def __init__(self, app: ASGIApp, *, refuse: Refusal) -> None:
        """Remember how a refusal is shown."""
        self.app = app
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the address, the announced length and the bytes that really arrive."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        raw_path = scope.get("raw_path") or scope["path"].encode()
        if len(raw_path) > MAX_PATH_BYTES or len(scope["query_string"]) > MAX_QUERY_BYTES:
            await PlainTextResponse("URI too long\n", 414)(scope, receive, send)
            return
        limit = body_limit_bytes(scope["path"])
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > limit:
            await self.refuse(Request(scope), 413)(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413)
            return message

        await self.app(scope, receive_counted, send)


def body_limit_bytes(path: str) -> int:
    """Return how long the body of a request to a path may be, in bytes."""
    return BODY_BYTES_BY_PATH.get(path, MAX_BODY_BYTES)


def is_cross_site(headers: Headers, base_url: str) -> bool:
    """Whether a browser says that a request comes from another site.

    Sec-Fetch-Site decides where it is sent (trustworthy addresses only), else Origin. A request
    with neither is no browser's and carries no ambient rights, as there are no cookies.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = headers.get("origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc not in {headers.get("host"), urlsplit(base_url).netloc}


class CrossSiteGuard:
    """Refuse requests that change something when they come from another site."""

    def __init__(self, app: ASGIApp, *, base_url: str, refuse: Refusal) -> None:
        """Remember our own address and how a refusal is shown."""
        self.app = app
        self.base_url = base_url
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 to an unsafe cross-site request, pass on all others."""
        if (
            scope["type"] == "http"
            and scope["method"] not in SAFE_METHODS
            and is_cross_site(Headers(scope=scope), self.base_url)
        ):
            await self.refuse(Request(scope), 403)(scope, receive, send)
            return
        await self.app(scope, receive, send)
