"""How accurate the memory model is: every observed start, predicted beside printed."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.accuracy import Accuracy
from app.web.locale import page
from app.web.render import Renderer
from app.web.view_models.accuracy_view import accuracy_view

router = APIRouter()


async def accuracy(request: Request) -> Response:
    """Show what was measured, how far the predictions are off, and every start."""
    table: Accuracy = request.app.state.accuracy
    renderer: Renderer = request.app.state.renderer
    view = accuracy_view(table, request.app.state.catalogue)
    return renderer.page(request, "accuracy/accuracy.html", view=view)


page(router, "accuracy", de="/genauigkeit", en="/accuracy")(accuracy)
