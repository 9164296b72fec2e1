"""Failures are answers too: translated, whole or as a fragment, never JSON on a page."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI, HTTPException
from starlette.requests import Request

from app.catalog.catalogue import Catalogue
from app.main import create_app
from app.settings import Settings
from app.telemetry.logging import configure
from app.web.errors import error_response
from tests.strict_client import StrictClient

STATUSES = [403, 404, 405, 410, 413, 422, 429, 500, 503]


@pytest.fixture(scope="module")
def production(settings: Settings, catalogue: Catalogue) -> FastAPI:
    """Return an application as in production, with routes that fail in every way."""
    app: FastAPI = create_app(settings.model_copy(update={"environment": "production"}), catalogue)

    @app.get("/de/status/{status}")
    @app.get("/en/status/{status}")
    @app.get("/api/status/{status}")
    async def fail(status: int) -> None:
        raise HTTPException(status, headers={"Retry-After": "60"})

    @app.get("/de/crash")
    @app.get("/api/crash")
    async def crash() -> None:
        raise RuntimeError("ann@example.com")

    @app.post("/de/read")
    async def read(request: Request) -> str:
        return str(len(await request.body()))

    return app


@pytest.fixture
def failing(production: FastAPI) -> Iterator[StrictClient]:
    """Return a client for that application; logs are written as it set them up."""
    configure(production=True, level="error")
    with StrictClient(production) as client:
        yield client


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("language", ["de", "en"])
def test_every_status_has_a_page_and_a_fragment(
    failing: StrictClient, status: int, language: str
) -> None:
    """A status is a page for everybody and a fragment for htmx; the address bar stays as it was."""
    path = f"/{language}/status/{status}"
    whole = failing.get(path)
    part = failing.get(path, headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert whole.status_code == part.status_code == status
    assert f'<html lang="{language}"' in whole.text
    assert "<html" not in part.text
    assert "<h1" in part.text
    for answer in (whole, part):
        assert answer.headers["hx-push-url"] == "false"
        assert answer.headers["retry-after"] == "60"
        assert "HX-Request-Type" in answer.headers["vary"]


def test_history_restore_gets_the_whole_page(failing: StrictClient) -> None:
    """Back and Forward ask for the whole page, not for a fragment."""
    answer = failing.get(
        "/de/status/404",
        headers={"HX-Request": "true", "HX-History-Restore-Request": "true"},
    )
    assert "<html" in answer.text


@pytest.mark.parametrize("status", STATUSES)
def test_api_failures_are_json(failing: StrictClient, status: int) -> None:
    """A program gets the shape of the API's own errors."""
    answer = failing.get(f"/api/status/{status}")
    assert answer.status_code == status
    assert answer.json()["detail"][0].keys() == {"loc", "msg", "code"}


def test_invalid_parameter_is_a_page_or_json(failing: StrictClient) -> None:
    """A path that does not parse is a 422 page on pages and a list of details below /api."""
    assert "ließ sich nicht lesen" in failing.get("/de/status/none").text
    answer = failing.get("/api/status/none")
    assert answer.status_code == 422
    assert answer.json()["detail"] == [
        {
            "loc": ["path", "status"],
            "msg": "Input should be a valid integer, unable to parse string as an integer",
            "code": "int_parsing",
        }
    ]


def test_crash_is_a_page_with_a_number(
    failing: StrictClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash shows a page with the request's number; the log holds that number, never the text."""
    answer = failing.get("/de/crash", headers={"X-Request-ID": "abcd-1234"})
    assert answer.status_code == 500
    assert "abcd-1234" in answer.text
    logged = capsys.readouterr().out
    assert '"request_id": "abcd-1234"' in logged
    assert '"error": "RuntimeError"' in logged
    assert "ann@example.com" not in logged + answer.text
    assert "content-security-policy" in answer.headers


def test_crash_below_api_is_json(failing: StrictClient) -> None:
    """A crash below /api is JSON without details."""
    assert failing.get("/api/crash").json()["detail"][0]["code"] == "internal_server_error"


def test_crash_is_raised_in_development(make_client: Callable[..., StrictClient]) -> None:
    """In development the failure reaches the console and the test."""
    client = make_client()

    @client.served.get("/de/crash")
    async def crash() -> None:
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        client.get("/de/crash")


def test_failing_error_page_is_plain_text(
    failing: StrictClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When even the error page fails, a short plain answer is left."""
    renderer = failing.served.state.renderer
    monkeypatch.setattr(renderer, "page", lambda *_args, **_named: 1 / 0)
    answer = failing.get("/de/crash")
    assert answer.status_code == 500
    assert answer.text == "Internal Server Error\n"


def test_unannounced_body_is_counted(failing: StrictClient) -> None:
    """A streamed body is refused once it exceeds the limit, whatever it announced."""
    answer = failing.post("/de/read", content=(b"x" * 1_000 for _ in range(100)))
    assert answer.status_code == 413
    assert "zu viel Text" in answer.text
    assert failing.post("/de/read", content=(b"x" for _ in range(10))).text == '"10"'


def test_wrong_method_keeps_allow(client: StrictClient) -> None:
    """A 405 page says which methods the address accepts."""
    answer = client.post("/healthz")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


def test_error_response_is_reusable(app: FastAPI) -> None:
    """Routes and middleware make error pages with the same function."""
    scope = {
        "type": "http", "app": app, "path": "/en/x", "headers": [], "query_string": b"",
        "method": "GET", "server": ("127.0.0.1", 80), "scheme": "http",
    }  # fmt: skip
    assert error_response(Request(scope), 429).status_code == 429
