"""Pasted logs and metrics pages for programs."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.readings.log_text import decode
from app.readings.metrics_page import MetricsPageTooLongError, read_metrics_page
from app.readings.start_log import read_start_log
from app.web import api_reading_schema as shape
from app.web.api_readings import log_answer, metrics_answer
from app.web.api_schema import Refused
from app.web.locale import place_of

router = APIRouter(prefix="/api")

_TOO_LONG: Final[dict[int | str, dict[str, Any]]] = {
    413: {"model": Refused, "description": "The text is longer than allowed."}
}


def _body(description: str) -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


@router.post(
    "/v1/start-log",
    operation_id="read_start_log",
    responses={200: {"model": shape.LogFound}, **_TOO_LONG},
    openapi_extra=_body("A start log of vLLM, up to 5 MB; it is read and forgotten."),
)
async def start_log(request: Request) -> Response:
    """Read a start log: every start, every recognised line, predicted against printed."""
    body = await request.body()
    return await run_in_threadpool(_start_log, request, body)


@router.post(
    "/v1/metrics",
    operation_id="read_metrics",
    responses={200: {"model": shape.MetricsFound}, **_TOO_LONG},
    openapi_extra=_body(
        "A /metrics page, up to 1 MB; a second one of the same server may follow a line `---`."
    ),
)
async def metrics(request: Request) -> Response:
    """Read a metrics page: what the cache holds, and what holds the server back."""
    body = await request.body()
    return await run_in_threadpool(_metrics, body)


def _start_log(request: Request, body: bytes) -> Response:
    reading = read_start_log(decode(body))
    answer = log_answer(reading, request.app.state.catalogue, place_of(request).language)
    return _json(answer)


def _metrics(body: bytes) -> Response:
    try:
        reading = read_metrics_page(decode(body))
    except MetricsPageTooLongError:
        raise HTTPException(413) from None
    return _json(metrics_answer(reading))


def _json(body: BaseModel) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(body.model_dump_json(), media_type="application/json", headers=headers)
