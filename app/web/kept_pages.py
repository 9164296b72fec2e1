"""Results that were rendered lately, kept for whoever opens the same address next."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response

from app.web.render import wants_block

Endpoint = Callable[[Request], Awaitable[Response]]
Key = tuple[str, str, bool, bool]
# The header by which the page's script says that somebody is still typing.
TYPED: Final = "sizing-typed"
# A whole page has about 70 kB, a matrix about 110 kB.
KEPT_PAGES: Final = 128
OK: Final = 200


@dataclass(frozen=True, slots=True)
class _Kept:
    body: bytes
    headers: tuple[tuple[str, str], ...]


class KeptPages:
    """The last good answers, by all that decides them: path, query, page or block, typed or not.

    Where several ask for the same at once, one is answered and the others wait for what it got.
    Sound because a page of a sizing is a function of its address: no cookie, no time, no data that
    changes while the process runs.
    """

    def __init__(self, size: int) -> None:
        """Keep that many answers; 0 keeps none, for development, where templates change."""
        self._size = size
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, request: Request, endpoint: Endpoint) -> Response:
        """Answer from memory, else ask the endpoint. Who has a copy already asks it as well."""
        if not self._size or "if-none-match" in request.headers:
            return await endpoint(request)
        typed = TYPED in request.headers
        key = (request.url.path, request.url.query, wants_block(request), typed)
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            return await self._answer(key, request, endpoint)

    async def _answer(self, key: Key, request: Request, endpoint: Endpoint) -> Response:
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
