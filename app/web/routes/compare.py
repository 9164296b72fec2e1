"""Up to four sizings side by side; each is the query of its own page."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.web.case import READABLE, Case
from app.web.forms import Form, read_form
from app.web.locale import page, place_of
from app.web.render import Renderer
from app.web.view_models.compared import Compared, Side, compared
from app.web.view_models.result_view import ResultViews

router = APIRouter()

MOST: Final = 4
MAX_FIELDS: Final = 100
_LLAMA: Final = (
    "model=llama-3.3-70b&checkpoint=nvidia/Llama-3.3-70B-Instruct-FP8&gpu=rtx-pro-6000-server"
    "&server=2x-rtx-pro-6000-server&max_model_len=8192"
)
# Two copies against one pair: why 24 and 78.
EXAMPLE: Final = (f"{_LLAMA}&replicas=2", f"{_LLAMA}&tensor_parallel_size=2")


async def compare(request: Request) -> Response:
    """Show the sizings whose addresses or queries stand in `case`; what is wrong says so."""
    given = [text.strip() for text in request.query_params.getlist("case") if text.strip()]
    is_example = not given
    queries = [text.partition("#")[0].rpartition("?")[2] for text in given or EXAMPLE][:MOST]
    place = place_of(request)
    catalogue = request.app.state.catalogue
    forms = [read_form(_pairs(query), place.language, catalogue) for query in queries]
    found = await run_in_threadpool(_compare, request, forms)
    base = Case(request, place, read_form((), place.language, catalogue))
    written = [urlencode(form.pairs(), safe=READABLE) for form in forms]
    renderer: Renderer = request.app.state.renderer
    return renderer.page(
        request,
        "compare/compare.html",
        c=found,
        case=base,
        forms=forms,
        fields=[*written, *[""] * (MOST - len(written))],
        is_example=is_example,
        left_out=max(0, len(given) - MOST),
        permalink=base.path("compare", [("case", query) for query in written]),
        section="compare",
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, max_num_fields=MAX_FIELDS)
    except ValueError:
        return []


def _compare(request: Request, forms: list[Form]) -> Compared | None:
    """Size every side that can be; None where none can."""
    views: ResultViews = request.app.state.result_views
    sides = []
    for form in forms:
        if form.problems:
            continue
        sized = views.sized(form.answers)
        if sized.result is None:
            continue
        entry = sized.prepared.model
        case = Case(request, place_of(request), form)
        sides.append(
            Side(
                name=entry.name if entry else sized.result.request.model.architecture,
                prepared=sized.prepared,
                result=sized.result,
                href=case.path("workbench", form.pairs()),
            )
        )
    return compared(sides) if sides else None


page(router, "compare", de="/vergleich", en="/compare")(compare)
