"""Pages kept for the next who asks: the same bytes, only where they are the same."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response

from app.web.kept_pages import KeptPages


def request(query: str = "a=1", path: str = "/de/rechner", **headers: str) -> Request:
    """Return a request for an address."""
    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return Request(
        {
            "type": "http", "method": "GET", "path": path, "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:8000"), *pairs], "scheme": "http",
            "server": ("127.0.0.1", 8000),
        }
    )  # fmt: skip


class Page:
    """An endpoint that counts how often it is asked."""

    def __init__(self, status: int = 200) -> None:
        """Answer with a status."""
        self.status = status
        self.asked = 0

    async def __call__(self, _request: Request) -> Response:
        """Answer with a number of its own."""
        self.asked += 1
        return Response(f"answer {self.asked}", self.status, {"ETag": f'"{self.asked}"'})


def answer(pages: KeptPages, page: Page, asked: Request) -> Response:
    """Ask once."""
    return asyncio.run(pages.answer(asked, page))


def test_the_same_address_is_rendered_once() -> None:
    """The second answer has the bytes and headers of the first, and is an object of its own."""
    pages, page = KeptPages(2), Page()
    first, second = (answer(pages, page, request()) for _ in range(2))
    assert page.asked == 1
    assert second is not first
    assert (second.body, second.raw_headers) == (first.body, first.raw_headers)


@pytest.mark.parametrize(
    "other",
    [
        request("a=2"), request(path="/en/workbench"), request(hx_request="true"),
        request(hx_request="true", sizing_typed="true"), request(sizing_typed="true"),
    ],
)  # fmt: skip
def test_what_decides_an_answer_keeps_it_apart(other: Request) -> None:
    """Query, language, page or block, and typing or not each have an answer of their own."""
    pages, page = KeptPages(2), Page()
    answer(pages, page, request())
    assert answer(pages, page, other).body == b"answer 2"


@pytest.mark.parametrize("status", [303, 422, 500])
def test_only_good_answers_are_kept(status: int) -> None:
    """A redirect, a mistake and a failure are worked out anew each time."""
    pages, page = KeptPages(2), Page(status)
    answer(pages, page, request())
    answer(pages, page, request())
    assert page.asked == 2


def test_a_copy_elsewhere_is_compared_by_the_endpoint() -> None:
    """Who sends an entity tag may get 304, which is for them alone."""
    pages, page = KeptPages(2), Page()
    for _ in range(2):
        answer(pages, page, request(if_none_match='"1"'))
    assert page.asked == 2
    assert answer(pages, page, request()).body == b"answer 3"


def test_the_oldest_makes_room() -> None:
    """No more pages are kept than there is room for, the last used ones."""
    pages, page = KeptPages(2), Page()
    for query in ("a", "b", "a", "c", "a"):
        answer(pages, page, request(query))
    assert page.asked == 3
    answer(pages, page, request("b"))
    assert page.asked == 4


def test_who_asks_while_it_is_worked_out_waits_for_the_same_answer() -> None:
    """Ten at once cost one rendering; another address does not wait for it."""
    pages, released = KeptPages(2), asyncio.Event()
    asked: list[str] = []

    async def slow(request: Request) -> Response:
        asked.append(request.url.query)
        if request.url.query == "slow":
            await released.wait()
        return Response(f"answer {len(asked)}")

    async def ask() -> list[bytes]:
        waiting = [asyncio.create_task(pages.answer(request("slow"), slow)) for _ in range(10)]
        await asyncio.sleep(0)
        await pages.answer(request("other"), slow)
        released.set()
        return [bytes((await task).body) for task in waiting]

    assert len(set(asyncio.run(ask()))) == 1
    assert asked == ["slow", "other"]


def test_nothing_is_kept_without_room() -> None:
    """In development, where templates change, every answer is new."""
    pages, page = KeptPages(0), Page()
    for _ in range(2):
        answer(pages, page, request())
    assert page.asked == 2
