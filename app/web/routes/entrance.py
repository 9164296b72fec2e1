"""The bare address: sends everybody to the pages in their language."""

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.requests import Request

from app.web.locale import place_of

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/embed/", methods=["GET", "HEAD"])
async def choose_language(request: Request) -> RedirectResponse:
    """Redirect to /de/ or /en/ by Accept-Language, with the query string unchanged."""
    query = request.url.query
    target = f"{place_of(request).prefix}/{'?' + query if query else ''}"
    return RedirectResponse(
        target, 302, headers={"Vary": "Accept-Language", "Cache-Control": "no-cache"}
    )
