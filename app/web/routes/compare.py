"""Up to four sizings side by side and on one server; each is the query of its own page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.servers import Server
from app.web.case import READABLE, Case
from app.web.forms import Form, read_form
from app.web.locale import page, place_of
from app.web.render import Renderer
from app.web.view_models.compared import Compared, Side, compared
from app.web.view_models.one_server import OneServer, on_one_server
from app.web.view_models.result_view import ResultViews
from app.wizard.answers import Answers
from app.wizard.one_server import named_server
from app.wizard.permalink import query_pairs

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
    chosen = named_server(request.query_params.get("server", "").lower(), catalogue)
    written = [urlencode(form.pairs(), safe=READABLE) for form in forms]
    kept = [("server", chosen.slug)] if chosen else []
    renderer: Renderer = request.app.state.renderer
    return renderer.page(
        request,
        "compare/compare.html",
        c=found,
        together=found and await run_in_threadpool(_together, base, found.sides, chosen),
        case=base,
        forms=forms,
        fields=[*written, *[""] * (MOST - len(written))],
        is_example=is_example,
        left_out=max(0, len(given) - MOST),
        written=written,
        kept=kept,
        permalink=base.path("compare", [*_cases(written), *kept]),
        section="compare",
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, max_num_fields=MAX_FIELDS)
    except ValueError:
        return []


def _cases(queries: Sequence[str]) -> list[tuple[str, str]]:
    return [("case", query) for query in queries]


def _together(base: Case, sides: Sequence[Side], chosen: Server | None) -> OneServer | None:
    """Place all sides on one server; None for a single one, and where no server has their card."""
    if len(sides) == 1:
        return None

    def href(answers: Sequence[Answers], server: Server) -> str:
        queries = [urlencode(query_pairs(each) or (), safe=READABLE) for each in answers]
        return base.path("compare", [*_cases(queries), ("server", server.slug)]) + "#together"

    return on_one_server(
        [side.prepared for side in sides],
        [side.result for side in sides],
        [side.name for side in sides],
        chosen,
        base.catalogue,
        href,
    )


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
