"""Pages that only have something to say: start, help, how it computes, privacy."""

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.web.locale import page
from app.web.render import Renderer

router = APIRouter()

PAGES: Final = (
    # name, German path, English path
    ("start", "/", "/"),
    ("help", "/hilfe", "/help"),
    ("about", "/so-rechnet-es", "/how-it-computes"),
    ("privacy", "/datenschutz", "/privacy"),
)


def _register(name: str, german: str, english: str) -> None:
    async def show(request: Request) -> Response:
        renderer: Renderer = request.app.state.renderer
        return renderer.page(request, f"pages/{name}.html")

    page(router, name, de=german, en=english)(show)


for _page in PAGES:
    _register(*_page)
