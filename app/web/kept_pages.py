"""Results that were rendered lately, kept for whoever opens the same address next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.web.render import wants_block

Endpoint = Callable[[Request], Awaitable[Response]]
# The header by which the page's script says that somebody is still typing.
TYPED: Final = "sizing-typed"
# A whole page has about 70 kB.
KEPT_PAGES: Final = 128
OK: Final = 200


@dataclass(frozen=True, slots=True)
class _Kept:
    body: bytes
    headers: tuple[tuple[str, str], ...]


class KeptPages:
    """The last good answers, by all that decides them: path, query, page or block, typed or not.

    Sound because a page of a sizing is a function of its address: no cookie, no time, no data that
    changes while the process runs.
    """

    def __init__(self, size: int) -> None:
        """Keep that many answers; 0 keeps none, for development, where templates change."""
        self._size = size
        self._kept: OrderedDict[tuple[str, str, bool, bool], _Kept] = OrderedDict()

    async def answer(self, request: Request, endpoint: Endpoint) -> Response:
        """Answer from memory, else ask the endpoint. Who has a copy already asks it as well."""
        if not self._size or "if-none-match" in request.headers:
            return await endpoint(request)
        typed = TYPED in request.headers
        key = (request.url.path, request.url.query, wants_block(request), typed)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return Response(kept.body, OK, dict(kept.headers))
        response = await endpoint(request)
        if response.status_code == OK:
            self._kept[key] = _Kept(bytes(response.body), tuple(response.headers.items()))
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return response


def keeping(endpoint: Endpoint) -> Endpoint:
    """Let the application's kept pages answer for an endpoint where they can."""

    async def answer(request: Request) -> Response:
        kept_pages: KeptPages = request.app.state.kept_pages
        return await kept_pages.answer(request, endpoint)

    return answer
