"""The page before a quote: what a request contains, and how to send it."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote as percent_encoded

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from app.web.case import Case, read_case
from app.web.locale import page
from app.web.render import Renderer
from app.web.view_models.answered import Answered, answered_before
from app.web.view_models.result_view import ResultView

router = APIRouter()

MAIL_TEXT: Final = "quote/mail.txt"
MAIL_SUBJECT: Final = "quote/subject.txt"


async def quote(request: Request) -> Response:
    """Show what a request contains; without a result to send, go to the workbench."""
    case = read_case(request)
    view = case.view()
    if view is None:
        return RedirectResponse(case.path("workbench", case.form.pairs()), 303)
    answered = answered_before(
        None, case.answers, case.catalogue,
        lambda code: case.path(code, [*case.form.pairs(), ("from", "check")]),
    )  # fmt: skip
    renderer: Renderer = request.app.state.renderer
    context = case.context(r=view, answered=answered, mailto=_mailto(case, view, answered))
    return renderer.page(request, "quote/request.html", **context)


def _mailto(case: Case, view: ResultView, answered: tuple[Answered, ...]) -> str:
    """Return an address that opens an e-mail with the figures in it."""
    renderer: Renderer = case.request.app.state.renderer
    texts = {
        name: renderer.text(
            case.place.language, template, r=view, answered=answered, catalogue=case.catalogue
        ).strip()
        for name, template in (("subject", MAIL_SUBJECT), ("body", MAIL_TEXT))
    }
    query = "&".join(f"{name}={percent_encoded(text)}" for name, text in texts.items())
    return f"mailto:{case.catalogue.vendor.email}?{query}"


page(router, "quote", de="/angebot", en="/quote")(quote)
