"""From a need to the smallest server that meets it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.web.case import READABLE, Case
from app.web.errors import KEEP_ADDRESS
from app.web.forms import PAGE_KEYS
from app.web.kept_pages import keeping
from app.web.locale import page, place_of
from app.web.need_form import OWN_NAMES, NeedForm, read_need
from app.web.render import Renderer
from app.web.view_models.choices import other_cards
from app.web.view_models.need_view import Choice, NeedView, NeedViews
from app.web.view_models.result_view import ResultViews
from app.wizard.need import BITS, Need
from app.wizard.presets import PRESETS

router = APIRouter()

EXAMPLE: Final = (("model", "llama-3.3-70b"), ("preset", "rag"), ("users", "200"))
SIZING_FIELDS: Final = frozenset(
    {
        "model", "max_model_len", "peak_requests", "mean_request_tokens", "p95_request_tokens",
        "kv_cache_dtype", "gpu", "server",
    }
)  # fmt: skip
COMPARED: Final = 3
UNPROCESSABLE: Final = 422


async def need(request: Request) -> Response:
    """Show the layouts that meet a need; with something wrong, what and where (422)."""
    asked = tuple(request.query_params.multi_items())
    is_example = not any(text.strip() and name not in PAGE_KEYS for name, text in asked)
    pairs = EXAMPLE if is_example else asked
    place = place_of(request)
    form = read_need(pairs, place.language, request.app.state.catalogue)
    case = Case(request, place, form.sizing)
    found: NeedView | None = None
    if not form.problems:
        found = await run_in_threadpool(_view, request, form)
    renderer: Renderer = request.app.state.renderer
    wrong = bool(form.problems)
    return renderer.page(
        request,
        "need/need.html",
        status=UNPROCESSABLE if wrong else 200,
        headers=KEEP_ADDRESS if wrong else None,
        **{
            **case.context(),
            "form": form,
            "v": found,
            "is_example": is_example,
            "workload": form.workload(),
            "section": "need",
            **_offered(case),
            **_links(case, pairs, found),
            "carried_pairs": _carried(form, case),
        },
    )


def _offered(case: Case) -> dict[str, object]:
    """Return what the fields offer."""
    views: ResultViews = case.request.app.state.result_views
    prepared = case.form.prepared
    release = prepared.request.release if prepared.request else None
    return {
        "choices": views.choices.bench(case.answers, release),
        "other_cards": other_cards(case.catalogue),
        "presets": PRESETS,
        "all_bits": BITS,
    }


def _links(
    case: Case, pairs: tuple[tuple[str, str], ...], found: NeedView | None
) -> dict[str, object]:
    """Return where lines of the table lead: to their result, their curve, side by side."""
    kept = [
        (name, text)
        for name, text in pairs
        if name != "offer" and text.strip() and text.isprintable()
    ]
    first = [("case", line.query) for line in found.offers[:COMPARED]] if found else []
    return {
        "with_offer": lambda place: f"?{urlencode([*kept, ('offer', str(place))], safe=READABLE)}",
        "compare_href": case.path("compare", first),
        "bench": case.path("workbench").partition("?")[0],
        "frame_query": "".join(f"&{name}={text}" for name, text in case.frame()),
    }


def _view(request: Request, form: NeedForm) -> NeedView | None:
    peak = form.peak_requests()
    if peak is None:
        return None
    views: NeedViews = request.app.state.need_views
    wanted = Need(peak, form.workload(), spare_copies=int(form.spare))
    return views.view(form.answers, wanted, Choice(form.cards, form.bits), form.offer)


def _carried(form: NeedForm, case: Case) -> list[tuple[str, str]]:
    pairs = form.sizing.pairs(without=SIZING_FIELDS | set(OWN_NAMES))
    return [*pairs, *case.frame()]


page(router, "need", de="/bedarf", en="/need")(keeping(need))
