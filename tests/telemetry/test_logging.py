"""Log lines hold what helps and nothing about a person."""

import asyncio
import json

import pytest
import structlog
from starlette.types import Message

from app.telemetry.logging import WITHHELD, configure, frames_of, withhold_unknown
from tests.strict_client import StrictClient


def test_unknown_keys_are_withheld() -> None:
    """A value under a key that is not on the list never reaches the log."""
    line = {"event": "sent", "email": "ann@example.com", "status": 200}
    assert withhold_unknown(None, "info", line) == {
        "event": "sent",
        "email": WITHHELD,
        "status": 200,
    }


def test_production_lines_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """In production a line is one JSON object with level and time."""
    configure(production=True, level="info")
    structlog.get_logger().info("started", version="1")
    structlog.get_logger().debug("hidden")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line).keys() == {"event", "level", "timestamp", "version"}


def test_request_lines_hold_no_address_and_no_query(
    client: StrictClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request's line holds its route template, not its address or what was asked."""
    configure(production=True, level="info")
    client.get("/healthz?email=ann@example.com", headers={"x-forwarded-for": "203.0.113.9"})
    logged = capsys.readouterr().out
    assert json.loads(logged)["route"] == "/healthz"
    assert "ann" not in logged
    assert "203.0.113.9" not in logged


def test_a_broken_upload_is_no_failure_of_ours(
    client: StrictClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who goes while sending is counted as gone: no error in the log, no answer to nobody."""
    configure(production=True, level="info")
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/sizing", "query_string": b"",
        "headers": [], "scheme": "http", "app": client.app,
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        await client.app(scope, receive, send)

    asyncio.run(ask())
    (line,) = capsys.readouterr().out.splitlines()
    assert sent == []
    assert (json.loads(line)["level"], json.loads(line)["status"]) == ("info", 499)


def test_request_id_is_taken_over_only_if_harmless(client: StrictClient) -> None:
    """A proxy's id is kept; anything else is replaced, so that nobody writes into our log."""
    kept = client.get("/healthz", headers={"x-request-id": "0123-abcd-4567"})
    assert kept.headers["x-request-id"] == "0123-abcd-4567"
    replaced = client.get("/healthz", headers={"x-request-id": "x y <b>"})
    assert replaced.headers["x-request-id"] != "x y <b>"


def test_frames_say_where_not_what() -> None:
    """The place of a failure is logged without its message."""
    with pytest.raises(ValueError, match="secret") as caught:
        int("secret")
    frames = frames_of(caught.value)
    assert "test_logging.py" in frames[-1]
    assert "secret" not in str(frames)
