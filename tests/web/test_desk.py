"""The desk: closed unless configured, open to one password, and everything works there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
import time_machine

from app.quotes.desk_login import hash_of
from app.quotes.token import SESSION_LIFETIME
from app.tools import desk_password
from app.tools.desk_password import problem_with
from tests.strict_client import StrictClient, parse_strictly
from tests.web.quote_form import ENGLISH, GERMAN, office, send, stored

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery staple"  # noqa: S105 - of a test
START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
Make = Callable[..., StrictClient]
PAGES = ["", "/deliveries", "/export.csv", "/export.json", "/quotes/x", "/quotes/x/json"]


@cache
def password_hash() -> str:
    """Return the hash of the password; made once, as it is slow on purpose."""
    return hash_of(PASSWORD)


@pytest.fixture
def closed(make_client: Make, tmp_path: Path) -> StrictClient:
    """Return a client of an instance with a desk, nobody logged in."""
    return make_client(data_dir=tmp_path, quote_min_seconds=0, desk_password_hash=password_hash())


@pytest.fixture
def desk(closed: StrictClient) -> StrictClient:
    """Return a client that is logged in."""
    answer = closed.post("/desk/login", data={"password": PASSWORD, "next": "/desk"})
    assert answer.headers["location"] == "/desk"
    return closed


# --- the door -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/login"])
def test_without_a_password_there_is_no_desk(client: StrictClient, path: str) -> None:
    """An instance that was not given a password has no such page at all."""
    assert client.get(f"/desk{path}").status_code == 404
    assert client.post("/desk/login", data={"password": ""}).status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_nobody_passes_without_logging_in(closed: StrictClient, path: str) -> None:
    """Every page leads to the login and back; nothing of a request is shown."""
    answer = closed.get(f"/desk{path}")
    assert answer.headers["location"] == f"/desk/login?next=/desk{path}"
    for action in (
        "/quotes/x/status",
        "/quotes/x/notes",
        "/quotes/x/delete",
        "/deliveries/1/retry",
    ):
        assert closed.post(f"/desk{action}").headers["location"] == "/desk/login?next=/desk"


def test_the_cookie_is_strict_and_goes_to_the_desk_alone(closed: StrictClient) -> None:
    """HttpOnly, SameSite=Strict, for eight hours, for /desk; and no other page sets one."""
    answer = closed.post("/desk/login", data={"password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Path=/desk", "Max-Age=28800"):
        assert part in cookie
    assert "set-cookie" not in closed.get("/desk").headers


def test_the_cookie_is_secure_behind_https(make_client: Make, tmp_path: Path) -> None:
    """An instance that people reach by https never sends the cookie without."""
    served = make_client(
        data_dir=tmp_path, base_url="https://x.example", desk_password_hash=password_hash()
    )
    answer = served.post("/desk/login", data={"password": PASSWORD})
    assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_password_is_refused_and_guessing_is_slowed(closed: StrictClient) -> None:
    """422 with the reason; after ten tries a minute even the right one must wait."""
    first = closed.post("/desk/login", data={"password": "guess"})
    assert first.status_code == 422
    assert re.search(r"<title>\s*Error:", first.text)
    assert "set-cookie" not in first.headers
    last = [closed.post("/desk/login", data={"password": "x"}).status_code for _ in range(10)][-1]
    assert last == 429
    assert closed.post("/desk/login", data={"password": PASSWORD}).status_code == 429


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/desk/../x?y", "/deskx", "javascript:x"]
)
def test_the_login_leads_to_the_desk_alone(closed: StrictClient, target: str) -> None:
    """Whatever a link says, after the login comes a page of the desk."""
    answer = closed.post("/desk/login", data={"password": PASSWORD, "next": target})
    assert answer.headers["location"] == "/desk"


def test_a_session_ends(closed: StrictClient) -> None:
    """After eight hours, and on logging out, the login is asked for again."""
    with time_machine.travel(START, tick=False):
        answer = closed.post("/desk/login", data={"password": PASSWORD})
        cookie = {"cookie": answer.headers["set-cookie"].split(";")[0]}
        closed.cookies.clear()
        assert closed.get("/desk", headers=cookie).status_code == 200
    with time_machine.travel(START + SESSION_LIFETIME + timedelta(seconds=1), tick=False):
        assert closed.get("/desk", headers=cookie).status_code == 303
    assert closed.post("/desk/logout").headers["set-cookie"].startswith('desk=""')


def test_a_new_password_ends_all_sessions(make_client: Make, tmp_path: Path) -> None:
    """A cookie of yesterday's password opens nothing today."""
    before = make_client(data_dir=tmp_path, desk_password_hash=password_hash())
    answer = before.post("/desk/login", data={"password": PASSWORD})
    after = make_client(data_dir=tmp_path, desk_password_hash=hash_of("another password"))
    cookie = {"cookie": answer.headers["set-cookie"].split(";")[0]}
    assert after.get("/desk", headers=cookie).status_code == 303


def test_another_site_changes_nothing(desk: StrictClient) -> None:
    """A post from another site is refused although somebody is logged in."""
    send(desk)
    (quote,) = stored(desk)
    headers = {"origin": "https://evil.example"}
    assert desk.post(f"/desk/quotes/{quote.id}/delete", headers=headers).status_code == 403
    assert len(stored(desk)) == 1


# --- inside ---------------------------------------------------------------------------------------


def test_the_list_is_searched(desk: StrictClient) -> None:
    """All requests, or those that match a text and a status; nobody's markup is run."""
    send(desk, company="<script>alert(1)</script> AG")
    send(desk, GERMAN, email="bob@example.org")
    everything = desk.get("/desk").text
    assert "bob@example.org" in everything
    assert "&lt;script&gt;" in everything
    found = desk.get("/desk?q=BOB&status=new&page=1").text
    assert "bob@example.org" in found
    assert "ann@example.com" not in found
    assert "bob@example.org" not in desk.get("/desk?status=closed").text
    for odd in ("page=0", "page=-1", "page=x", "page=999999999", "page=٣", "status=x", "q=%25%00"):
        assert desk.get(f"/desk?{odd}").status_code == 200


def test_a_request_is_worked_on(desk: StrictClient) -> None:
    """Status and notes are kept and shown; figures, log lines and answers are those of that day."""
    send(desk, start_log="INFO <x>")
    (quote,) = stored(desk)
    address = f"/desk/quotes/{quote.id}"
    assert desk.post(f"{address}/status", data={"status": "offered"}).status_code == 303
    assert desk.post(f"{address}/notes", data={"text": "called\r\n<b>twice</b>"}).status_code == 303
    assert desk.post(f"{address}/notes", data={"text": "  "}).status_code == 303
    page = desk.get(address).text
    for text in (
        "offer sent",
        "called\n&lt;b&gt;twice",
        "GPU KV cache size",
        "nvidia/Llama",
        "GiB",
    ):
        assert text in page
    assert re.search(r'value="offered" selected', page)
    assert desk.post(f"{address}/status", data={"status": "x"}).status_code == 422
    assert desk.post(f"{address}/notes", data={"text": "x" * 5001}).status_code == 422
    assert desk.get(f"{address}/json").json()[0]["reference"] == quote.reference


def test_an_attached_log_is_read_with_one_button(desk: StrictClient) -> None:
    """The button beside an attached log sends it, as it is, to the page that reads logs."""
    log = 'INFO 05-01 10:00:00 [api_server.py:1] vLLM API server version 0.28.0\n"<x>" & more'
    send(desk, GERMAN, start_log=log)
    (quote,) = stored(desk)
    page = parse_strictly(desk.get(f"/desk/quotes/{quote.id}").text)
    (form,) = (each for each in page.iter("form") if (each.get("action") or "").endswith("/log"))
    (field,) = form.findall("input")
    assert field.get("value") == log
    read = desk.post(form.get("action") or "", data={field.get("name") or "": log}).text
    assert "vLLM 0.28.0" in read
    assert "German" in "".join(page.itertext())
    send(desk, ENGLISH)
    (plain,) = (each for each in stored(desk) if each.id != quote.id)
    without = desk.get(f"/desk/quotes/{plain.id}").text
    assert "Read this log" not in without
    assert "German" not in without


def test_a_request_is_deleted_after_a_question(desk: StrictClient) -> None:
    """The question deletes nothing; the button everything."""
    send(desk)
    (quote,) = stored(desk)
    address = f"/desk/quotes/{quote.id}/delete"
    assert desk.get(address).status_code == 200
    assert len(stored(desk)) == 1
    assert desk.post(address).headers["location"] == "/desk"
    assert stored(desk) == ()
    assert desk.get(f"/desk/quotes/{quote.id}").status_code == 404


def test_exports_hold_all_requests(desk: StrictClient) -> None:
    """Both files have every request."""
    send(desk)
    send(desk, ENGLISH, email="bob@example.org")
    table, whole = desk.get("/desk/export.csv"), desk.get("/desk/export.json")
    assert "ann@example.com" in table.text
    assert len(json.loads(whole.text)) == 2
    assert "attachment" in table.headers["content-disposition"]
    assert "no-store" in table.headers["cache-control"]


def test_dead_letters_are_seen_and_tried_again(desk: StrictClient) -> None:
    """What was given up is announced on the list, shown with its error, and revived by a button."""
    send(desk)
    (quote,) = stored(desk)
    boxes = office(desk).outbox
    moment = quote.created_at
    for _ in range(24):
        (leased,) = boxes.lease("w", "customer_mail", moment=moment, limit=1)
        boxes.failed(leased, "w", moment, code="smtp_550", retry_seconds=1)
        moment += timedelta(days=1)
    assert "1 message could not be delivered" in desk.get("/desk").text
    page = desk.get("/desk/deliveries").text
    assert "smtp_550" in page
    assert quote.reference in page
    (letter,) = boxes.dead_letters()
    assert desk.post(f"/desk/deliveries/{letter.id}/retry").status_code == 303
    assert boxes.load().dead == 0
    assert desk.post(f"/desk/deliveries/{letter.id}/retry").status_code == 404


def test_the_desk_speaks_the_browsers_language(desk: StrictClient) -> None:
    """One address, German or English by Accept-Language."""
    page = desk.get("/desk", headers={"accept-language": "de"}).text
    assert '<html lang="de">' in page
    assert "Anfragen" in page


@pytest.mark.parametrize(
    ("password", "repeated", "wrong"),
    [("short", "short", "12"), ("long enough to use", "other", "differ"), (PASSWORD, PASSWORD, "")],
)
def test_a_new_password_is_checked(password: str, repeated: str, wrong: str) -> None:
    """`make desk-password` refuses short passwords and slips of the finger."""
    assert wrong in (problem_with(password, repeated) or "")
    assert bool(problem_with(password, repeated)) == bool(wrong)


def test_without_a_terminal_the_password_is_asked_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody can type, `make desk-password` says so and prints no hash."""

    def nobody(_prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("app.tools.desk_password.getpass.getpass", nobody)
    assert desk_password.main() == 1
    printed = capsys.readouterr()
    assert "Run this in a terminal" in printed.err
    assert not printed.out
