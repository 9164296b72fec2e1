"""For machines that watch the service: is it alive, and what does it count."""

import hmac

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request

from app.settings import Settings
from app.telemetry.metrics import Metrics

router = APIRouter(include_in_schema=False)


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz(request: Request) -> JSONResponse:
    """Answer as soon as the process serves requests, without asking the database.

    `outbox` is what the delivery of quotes last saw: waiting and given up; null before its start.
    """
    counters: Metrics = request.app.state.metrics
    seen = {"waiting": counters.waiting, "dead": counters.dead}
    body = {"status": "ok", "outbox": None if counters.waiting is None else seen}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


@router.get("/metrics")
async def metrics(request: Request) -> PlainTextResponse:
    """Answer with the counters to whoever has the token; without one, nothing is here."""
    settings: Settings = request.app.state.settings
    given = request.headers.get("authorization", "").encode()
    token = settings.metrics_token
    if token is None or not hmac.compare_digest(
        given, f"Bearer {token.get_secret_value()}".encode()
    ):
        raise HTTPException(404)
    counters: Metrics = request.app.state.metrics
    return PlainTextResponse(counters.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
