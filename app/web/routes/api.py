"""The JSON API: the same answers and the same core as the pages, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.settings import Settings
from app.web import api_schema as shape
from app.web.api_answer import answer, work_out
from app.web.api_catalogue import gpu_list, model_list, release_list
from app.web.api_input import BodyError, read_body, read_query, strict_problems
from app.web.api_matrix import read_matrix_query, sized_rows, unsized_rows
from app.web.api_mix_schema import RequestMixAnswer
from app.web.api_parameters import EXAMPLE, body_schema, matrix_parameters, parameters
from app.web.api_request_mix import mix_answer, mix_parameters, read_mix_query
from app.web.locale import Language, place_of
from app.web.render import Renderer
from app.wizard.answers import ParsedAnswers, Problem
from app.wizard.matrix import matrix, usual_layouts
from app.wizard.sizing_request import Prepared, to_request

TOO_LONG: Final[dict[int | str, dict[str, Any]]] = {
    414: {
        "description": "The address is longer than 8 kB.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}
router = APIRouter(prefix="/api", responses=TOO_LONG)

SIZING_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": shape.SizingAnswer},
    413: {"model": shape.Refused, "description": "The body is larger than 1 MiB."},
    422: {"model": shape.Refused, "description": "An input cannot be read."},
}


@router.get(
    "/v1/sizing",
    operation_id="size_by_query",
    responses=SIZING_RESPONSES,
    openapi_extra={"parameters": parameters()},
)
async def size_by_query(request: Request) -> Response:
    """Size a server. Unknown names are refused with the nearest known one."""
    parsed = read_query(request.query_params.multi_items())
    return await run_in_threadpool(_sizing, request, parsed, "query")


@router.post(
    "/v1/sizing",
    operation_id="size_by_body",
    responses=SIZING_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body_schema(), "example": EXAMPLE}},
        }
    },
)
async def size_by_body(request: Request) -> Response:
    """Size a server; the object may hold a config.json as `hf_config`."""
    body = await request.body()
    try:
        parsed = await run_in_threadpool(read_body, body)
    except BodyError as error:
        return _refused(request, [Problem(error.code, "", "")], "body")
    return await run_in_threadpool(_sizing, request, parsed, "body")


@router.get(
    "/v1/matrix",
    operation_id="size_matrix",
    responses={
        200: {"model": shape.Matrix},
        422: {"model": shape.Refused, "description": "An input cannot be read."},
    },
    openapi_extra={"parameters": matrix_parameters()},
)
async def size_matrix(request: Request) -> Response:
    """Size one model on many cards in many layouts."""
    return await run_in_threadpool(_matrix, request)


@router.get(
    "/v1/request-mix",
    operation_id="mix_requests",
    responses={
        200: {"model": RequestMixAnswer},
        422: {"model": shape.Refused, "description": "An input cannot be read."},
    },
    openapi_extra={"parameters": mix_parameters()},
)
async def mix_requests(request: Request) -> Response:
    """Tell from how many requests of given lengths in flight preemption begins."""
    return await run_in_threadpool(_request_mix, request)


@router.get("/v1/models", operation_id="list_models", response_model=shape.ModelList)
async def list_models(request: Request) -> Response:
    """List the models of the catalogue with their checkpoints."""
    return await _listed(request, model_list)


@router.get("/v1/gpus", operation_id="list_gpus", response_model=shape.GpuList)
async def list_gpus(request: Request) -> Response:
    """List the cards of the catalogue."""
    return await _listed(request, gpu_list)


@router.get("/v1/releases", operation_id="list_releases", response_model=shape.ReleaseList)
async def list_releases(request: Request) -> Response:
    """List the vLLM releases with rules of their own, oldest first."""
    return await _listed(request, release_list)


@router.api_route("/docs", methods=["GET", "HEAD"], name="api_docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Show people what programs may send."""
    renderer: Renderer = request.app.state.renderer
    settings: Settings = request.app.state.settings
    query = [(name, str(value)) for name, value in EXAMPLE.items()]
    answers = read_query(query).answers
    catalogue: Catalogue = request.app.state.catalogue
    sized = work_out(to_request(answers, catalogue), answers, catalogue, _language(request))
    return renderer.page(
        request,
        "api/docs.html",
        description=request.app.openapi_url,
        lists={name: f"{router.prefix}/v1/{name}" for name in ("models", "gpus", "releases")},
        parameters=parameters(),
        base_url=settings.base_url,
        query=urlencode(query, safe="/"),
        answer=answer(sized).model_dump_json(indent=2),
    )


def _matrix(request: Request) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    query = read_matrix_query(request.query_params.multi_items(), catalogue)
    answers = query.parsed.answers.with_changes(gpu=catalogue.vendor.cards[0])
    prepared = to_request(answers, catalogue)
    problems = _problems(query.parsed, prepared)
    if problems:
        return _refused(request, problems, "query")
    if prepared.request is None:
        rows = unsized_rows(query, prepared.reason)
    else:
        layouts = query.layouts or usual_layouts(prepared.request.model)
        rows = sized_rows(matrix(prepared.request, query.gpus, layouts))
    return _json(shape.Matrix(data_version=catalogue.data_version, rows=rows))


def _request_mix(request: Request) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    query = read_mix_query(request.query_params.multi_items())
    prepared = to_request(query.parsed.answers, catalogue)
    problems = _problems(query.parsed, prepared)
    if problems or query.workload is None:
        return _refused(request, problems, "query")
    sized = prepared.reason if prepared.request is None else size(prepared.request)
    assert sized is not None  # noqa: S101 - without problems there is a request or a reason
    return _json(mix_answer(sized, query.workload, catalogue.data_version))


def _problems(parsed: ParsedAnswers, prepared: Prepared) -> list[Problem]:
    """Return everything wrong with the inputs: of one field only what reading it found first."""
    unread = {each.field for each in parsed.problems}
    return [
        *strict_problems(parsed.notices),
        *parsed.problems,
        *(each for each in prepared.problems if each.field not in unread),
    ]


def _sizing(request: Request, parsed: ParsedAnswers, where: str) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    prepared = to_request(parsed.answers, catalogue)
    problems = _problems(parsed, prepared)
    if problems:
        return _refused(request, problems, where)
    sized = work_out(prepared, parsed.answers, catalogue, _language(request))
    return _json(answer(sized))


def _refused(request: Request, problems: Iterable[Problem], where: str) -> Response:
    renderer: Renderer = request.app.state.renderer
    language = _language(request)
    details = [
        shape.Detail(
            loc=[where, each.field] if each.field else [where],
            msg=renderer.text(language, "api/problem.txt", problem=each).strip(),
            code=each.code,
        )
        for each in problems
    ]
    return _json(shape.Refused(detail=details), 422)


def _language(request: Request) -> Language:
    return place_of(request).language


async def _listed(request: Request, rows: Callable[[Catalogue], BaseModel]) -> Response:
    return _json(await run_in_threadpool(rows, request.app.state.catalogue))


def _json(body: BaseModel, status: int = 200) -> Response:
    response = Response(body.model_dump_json(), status, media_type="application/json")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept-Language"
    return response
