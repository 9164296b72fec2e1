"""What every answer promises, and which requests are refused before they are read."""

from collections.abc import Callable

import pytest
from starlette.datastructures import Headers

from app.web.security import MAX_BODY_BYTES, MAX_QUERY_BYTES, is_cross_site
from tests.strict_client import StrictClient

BASE = "http://127.0.0.1:8000"
EVERY_KIND = ["/healthz", "/de/nirgends", "/api/nowhere", "/static/favicon.svg", "/"]


@pytest.mark.parametrize("path", EVERY_KIND)
def test_every_answer_carries_the_policy(client: StrictClient, path: str) -> None:
    """Pages, errors, files, redirects and JSON all carry the strict policy and no cookie."""
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers


def test_only_embed_pages_may_be_framed(client: StrictClient) -> None:
    """Below /embed the configured origins may frame the page, and no older header forbids it."""
    headers = client.get("/embed/de/nirgends").headers
    assert "frame-ancestors 'self' https://www.example.com" in headers["content-security-policy"]
    assert "x-frame-options" not in headers


def test_a_path_that_only_starts_like_embed_is_not_framed(client: StrictClient) -> None:
    """/embedded is not /embed/."""
    policy = client.get("/embedded").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy


def test_transport_security_is_announced_on_https_only(client: StrictClient) -> None:
    """Browsers are told to stay on https once they came by https, never on http."""
    name = "strict-transport-security"
    assert name in client.get("https://127.0.0.1/healthz").headers
    assert name not in client.get("/healthz").headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "https://evil.example"}, False),
        ({"host": "127.0.0.1:8000", "origin": BASE}, False),
        ({"host": "inner:9000", "origin": BASE}, False),
        ({"host": "127.0.0.1:8000", "origin": "https://evil.example"}, True),
        ({"host": "127.0.0.1:8000", "origin": "null"}, True),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8001"}, True),
    ],
)
def test_cross_site_requests_are_recognised(headers: dict[str, str], expected: bool) -> None:  # noqa: FBT001
    """Sec-Fetch-Site decides where it is sent, else Origin against Host and our own address."""
    assert is_cross_site(Headers(headers), BASE) is expected


def test_cross_site_post_is_refused_with_a_page(client: StrictClient) -> None:
    """A form on another site gets a translated 403 page and reaches nothing."""
    answer = client.post("/de/", headers={"origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "fremden Seite" in answer.text


def test_cross_site_get_is_served(client: StrictClient) -> None:
    """Links on other sites work."""
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 302


def test_query_of_8_kb_is_served_and_more_gets_a_plain_414(client: StrictClient) -> None:
    """An address is accepted up to the limit; above it the answer is short plain text."""
    assert client.get("/?" + "a" * MAX_QUERY_BYTES).status_code == 302
    answer = client.get("/?" + "a" * (MAX_QUERY_BYTES + 1))
    assert answer.status_code == 414
    assert answer.headers["content-type"].startswith("text/plain")
    assert client.get("/" + "a" * 2_000).status_code == 414


def test_announced_body_above_the_limit_is_refused(client: StrictClient) -> None:
    """A body whose length is announced is refused unread, with a page in the page's language."""
    answer = client.post("/de/", content=b"x" * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert "zu viel Text" in answer.text


@pytest.mark.parametrize(("path", "limit"), [("/de/", "64\u202fKiB"), ("/de/log", "6\u202fMiB")])
def test_a_refused_body_is_told_the_limit_of_its_page(
    client: StrictClient, path: str, limit: str
) -> None:
    """The page says how much it takes itself, not what some other page does."""
    answer = client.post(path, headers={"content-length": "999999999"})
    assert answer.status_code == 413
    assert f"bis zu {limit}" in answer.text


@pytest.mark.parametrize("length", ["-1", "many", "1e9"])
def test_nonsense_length_is_refused(client: StrictClient, length: str) -> None:
    """A Content-Length that is no number is refused, not guessed."""
    assert client.post("/de/", headers={"content-length": length}).status_code == 413


def test_paste_routes_accept_more(client: StrictClient) -> None:
    """The limit of a pasted start log is 5 MiB, so a body above 64 KiB is not refused there."""
    answer = client.post("/api/v1/start-log", content=b"x" * (MAX_BODY_BYTES + 1))
    assert answer.status_code != 413


def test_metrics_need_the_token(make_client: Callable[..., StrictClient]) -> None:
    """Without a configured token /metrics does not exist; with it, only the bearer reads it."""
    assert make_client().get("/metrics").status_code == 404
    client = make_client(metrics_token="correct horse")  # noqa: S106 - a test's own
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code == 404
    answer = client.get("/metrics", headers={"authorization": "Bearer correct horse"})
    assert answer.status_code == 200
    assert 'sizing_requests_total{method="GET",route="/metrics",status="404"} 2.0' in answer.text
