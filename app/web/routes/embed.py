"""What only embedding sites ask for: the style sheet of a frame in their colours."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from starlette.responses import Response

from app.web.frame import SCHEMES, read_accent, readable, theme_css

router = APIRouter(include_in_schema=False)

KEPT = "public, max-age=86400"


@router.api_route("/theme.css", methods=["GET", "HEAD"])
async def theme(
    theme: Annotated[str, Query(max_length=8)] = "auto",
    accent: Annotated[str, Query(max_length=8)] = "",
) -> Response:
    """Answer with the colours of a frame; 400 with the reason where they cannot be used."""
    colour = read_accent(accent) if accent else None
    refused = ""
    if theme not in SCHEMES:
        refused = "theme must be light, dark or auto"
    elif accent and colour is None:
        refused = "accent must be six hexadecimal digits"
    elif colour is not None and not any(readable(colour, scheme) for scheme in SCHEMES[theme]):
        refused = "accent has a contrast below 4.5:1 on every background of this theme"
    if refused:
        return PlainTextResponse(f"{refused}\n", 400)
    return Response(
        theme_css(theme, colour), media_type="text/css", headers={"Cache-Control": KEPT}
    )
