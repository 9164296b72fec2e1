"""What changed between two releases for one case."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.releases import Releases, UnknownReleaseError
from app.core.releases import Release
from app.core.request import SizingRequest
from app.web.case import Case, read_case
from app.web.errors import KEEP_ADDRESS
from app.web.forms import PAGE_KEYS
from app.web.locale import page
from app.web.render import Renderer
from app.web.routes.result import EXAMPLE
from app.web.view_models.release_view import ReleaseView, release_view
from app.wizard.release_changes import compare_releases

router = APIRouter()

OTHER: Final = "other_version"
UNPROCESSABLE: Final = 422
CACHED: Final = 128


async def compare(request: Request) -> Response:
    """Show a case in two releases beside each other; with something wrong, what and where (422)."""
    given = [
        (name, text)
        for name, text in request.query_params.multi_items()
        if text.strip() and name not in PAGE_KEYS
    ]
    is_example = all(name == "vllm_version" for name, _ in given)
    case = read_case(request, [*EXAMPLE, *given] if is_example else ())
    catalogue = case.catalogue
    wanted = request.query_params.get(OTHER, "")
    sized, view, other = case.form.prepared.request, None, None
    if sized is not None and not case.form.problems:
        other = _other(wanted, sized.release, catalogue.releases)
        view = await run_in_threadpool(_view, sized, other, catalogue.releases.rows)
    renderer: Renderer = request.app.state.renderer
    wrong = bool(case.form.problems)
    return renderer.page(
        request,
        "releases/releases.html",
        block="comparison",
        status=UNPROCESSABLE if wrong else 200,
        headers=KEEP_ADDRESS if wrong else None,
        **case.context(
            view=view,
            sized=sized,
            reason=case.form.prepared.reason,
            other=other,
            releases=tuple(reversed(catalogue.releases.rows)),
            carried_pairs=[*_pairs(case, is_example=is_example), *case.frame()],
            bench=case.path("workbench", () if is_example else case.form.pairs()),
            is_example=is_example,
        ),
    )


def _pairs(case: Case, *, is_example: bool) -> list[tuple[str, str]]:
    """Return the answers that the form carries along; an example stays one."""
    return [] if is_example else [*case.form.pairs(without=("vllm_version",))]


def _other(wanted: str, first: Release, releases: Releases) -> Release:
    """Return the second release: as asked, else the newest, else the one before the newest."""
    try:
        return releases.release_for(wanted)[0]
    except UnknownReleaseError:
        return releases.newest if first is not releases.newest else releases.rows[-2]


@lru_cache(maxsize=CACHED)
def _view(sized: SizingRequest, other: Release, rows: tuple[Release, ...]) -> ReleaseView:
    return release_view(compare_releases(sized, other, rows))


page(router, "releases", de="/versionen", en="/releases")(compare)
