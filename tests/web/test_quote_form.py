"""The quote form: whatever somebody sends, the page says what happened and keeps every word."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.quotes.request import NOT_IN_PAGES
from app.quotes.token import CONFIRMATION_LIFETIME, FORM_LIFETIME
from app.storage.engine import Storage
from tests.strict_client import StrictClient, parse_strictly
from tests.web.quote_form import (
    ENGLISH,
    GERMAN,
    QUERY,
    counted,
    follow,
    office,
    open_form,
    send,
    stored,
    token_of,
)

pytestmark = pytest.mark.slow

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
EVERYTHING = {
    "email": "ann@example.com", "name": "Ann O'Neil <b>", "company": 'Müller & "Söhne"',
    "phone": "+49 30 1", "country": "Österreich", "quantity": "3", "wished_date": "März",
    "message": "\nfirst\n\tsecond </textarea><script>", "start_log": "INFO \u2028 log",
    "marketing": "yes",
}  # fmt: skip
Make = Callable[..., StrictClient]


@pytest.fixture
def desk(make_client: Make, tmp_path: Path) -> StrictClient:
    """Return a client of an instance with its own database and no time trap."""
    return make_client(data_dir=tmp_path, quote_min_seconds=0)


def _entered(page: str) -> dict[str, str]:
    """Return what a form shows as entered."""
    tree = parse_strictly(page)
    form = tree.find(".//form[@method='post']")
    assert form is not None
    found = {}
    for element in form.iter():
        name = element.get("name")
        if element.tag == "textarea" and name:
            found[name] = "".join(element.itertext())
        elif element.tag == "input" and name:
            if element.get("type") == "checkbox":
                ticked = element.get("checked") is not None
                found[name] = element.get("value", "") if ticked else ""
            else:
                found[name] = element.get("value", "")
    return found


# --- the form itself ------------------------------------------------------------------------------


def test_only_the_address_is_required(client: StrictClient) -> None:
    """Every other field says that it is optional; the marketing box is separate, unticked."""
    page = client.get(ENGLISH).text
    assert page.count("(optional)") == 8
    assert _entered(page)["marketing"] == ""
    assert "required" not in page
    assert 'autocomplete="email"' in page
    assert 'autocomplete="organization"' in page


@pytest.mark.parametrize(
    ("address", "texts"),
    [
        (ENGLISH, ["Nothing is sent before", "12 requests of 8,192", "180 days", "Art. 6(1)(b)"]),
        (GERMAN, ["wird nichts gesendet", "12 Anfragen mit je 8.192", "180 Tage", "Art. 6 Abs. 1"]),
    ],
)  # fmt: skip
def test_the_form_shows_what_will_be_sent_and_why(
    client: StrictClient, address: str, texts: list[str]
) -> None:
    """Figures, what happens to the data, and that nothing was sent yet, in both languages."""
    page = html.unescape(client.get(address).text)
    for text in texts:
        assert text in page


def test_without_a_result_there_is_nothing_to_ask_for(client: StrictClient) -> None:
    """Somebody who comes without answers is led to the workbench, by GET and by POST."""
    assert client.get("/en/quote").headers["location"].startswith("/en/workbench")
    assert client.post("/en/quote", data={}).headers["location"].startswith("/en/workbench")


def test_the_form_needs_no_cookie_and_is_kept_by_no_other(client: StrictClient) -> None:
    """No cookie is set, and no shared cache may keep the form and its token."""
    answer = client.get(ENGLISH)
    assert "set-cookie" not in answer.headers
    assert "private" in answer.headers["cache-control"]


# --- what is stored -------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [ENGLISH, GERMAN, f"/embed{ENGLISH}", f"/embed{GERMAN}"])
def test_a_sent_form_is_stored_and_confirmed(desk: StrictClient, address: str) -> None:
    """What was entered is stored with the figures, and the confirmation shows the same."""
    page = follow(desk, send(desk, address, **EVERYTHING))
    (quote,) = stored(desk)
    contact = quote.contact
    assert contact.name == EVERYTHING["name"]
    assert contact.message == "first\n\tsecond </textarea><script>"
    assert (contact.quantity, contact.start_log) == (3, EVERYTHING["start_log"])
    assert quote.marketing_at is not None
    assert quote.marketing_version
    assert quote.notice_version
    assert quote.sizing.result["verdict"]["requests"] == 12
    assert quote.sizing.result["steps"], "the whole result is kept, with its derivation"
    assert quote.sizing.data_version in (quote.sizing.permalink or "")
    assert page.status_code == 200
    shown = html.unescape(page.text)
    for text in (quote.reference, contact.name, contact.company, quote.sizing.permalink or "-"):
        assert text in shown


def test_the_frozen_result_is_the_apis(desk: StrictClient) -> None:
    """A stored result equals what GET /api/v1/sizing answers for the same inputs."""
    send(desk)
    (quote,) = stored(desk)
    answered = desk.get(f"/api/v1/sizing?{QUERY}", headers={"accept-language": "en"}).json()
    assert quote.sizing.result == answered


def test_what_was_sent_names_the_load_and_whose_log_it_is(desk: StrictClient) -> None:
    """Two copies have two logs: the figure is that of each, beside the load that was entered."""
    load = "replicas=2&peak_requests=13&mean_request_tokens=5000"
    page = html.unescape(follow(desk, send(desk, f"{ENGLISH}&{load}")).text)
    assert "Expected in the log of each of 2 instances" in page
    assert "at most 13 requests at once<br>5,000 tokens on average" in page


def test_a_box_that_is_not_ticked_is_no_agreement(desk: StrictClient) -> None:
    """Without the tick no time and no text of an agreement are stored."""
    send(desk)
    (quote,) = stored(desk)
    assert (quote.marketing_at, quote.marketing_version) == (None, None)


def test_the_same_form_twice_is_one_quote(desk: StrictClient) -> None:
    """A second click confirms the first request and says how to send another."""
    token = open_form(desk)
    first = follow(desk, send(desk, form_token=token))
    again = follow(desk, send(desk, form_token=token, email="other@example.com"))
    (quote,) = stored(desk)
    assert quote.contact.email == "ann@example.com"
    assert quote.reference in first.text
    assert "had been sent before" not in first.text
    assert "had been sent before" in again.text
    assert counted(desk, "repeated") == 1


def test_a_confirmation_ends_after_an_hour(desk: StrictClient) -> None:
    """The page with what was entered is gone after an hour; the request is not."""
    with time_machine.travel(START, tick=False):
        answer = send(desk)
    with time_machine.travel(START + CONFIRMATION_LIFETIME + timedelta(seconds=1), tick=False):
        late = follow(desk, answer)
    assert late.status_code == 410
    assert "ann@example.com" not in late.text
    assert len(stored(desk)) == 1


# --- what is not stored, with everything kept -----------------------------------------------------


def test_mistakes_are_named_beside_their_field_and_on_top(desk: StrictClient) -> None:
    """422, title, summary and field say the same, and nothing that was entered is lost."""
    wrong = {**EVERYTHING, "email": "ann@", "quantity": "many"}
    answer = send(desk, **wrong)
    assert answer.status_code == 422
    assert re.search(r"<title>\s*Error:", answer.text)
    text = html.unescape(answer.text)
    for problem in (
        "This e-mail address is not complete.",
        "Enter a whole number from 1 to 10,000.",
    ):
        assert text.count(problem) == 2
    entered = _entered(answer.text)
    assert {name: entered[name] for name in wrong} == wrong
    assert stored(desk) == ()


def test_the_next_try_after_a_mistake_is_stored(desk: StrictClient) -> None:
    """The form that comes back with a mistake can be sent again at once."""
    answer = send(desk, email="ann@")
    follow(desk, send(desk, form_token=token_of(answer)))
    assert len(stored(desk)) == 1


def test_too_fast_means_the_form_again(make_client: Make, tmp_path: Path) -> None:
    """Within three seconds nothing is stored and everything kept; the same form passes later."""
    desk = make_client(data_dir=tmp_path)
    with time_machine.travel(START, tick=False):
        token = open_form(desk)
        answer = send(desk, **EVERYTHING, form_token=token)
        assert answer.status_code == 422
        assert "very quick" in answer.text
        entered = _entered(answer.text)
        assert {name: entered[name] for name in EVERYTHING} == EVERYTHING
        assert token_of(answer) == token
    with time_machine.travel(START + timedelta(seconds=3), tick=False):
        follow(desk, send(desk, **EVERYTHING, form_token=token))
    assert len(stored(desk)) == 1
    assert counted(desk, "too_fast") == 1


@pytest.mark.parametrize("how", ["expired", "changed", "missing", "of another kind"])
def test_a_token_that_is_not_good_means_the_form_again(desk: StrictClient, how: str) -> None:
    """Old, changed, missing or stolen from a link: nothing stored, all kept, a new token works."""
    with time_machine.travel(START, tick=False):
        token = {
            "expired": open_form(desk),
            "changed": open_form(desk) + "x",
            "missing": "",
            "of another kind": office(desk).signer.link_token("q"),
        }[how]
    later = START + FORM_LIFETIME + timedelta(seconds=1)
    with time_machine.travel(later, tick=False):
        answer = send(desk, **EVERYTHING, form_token=token)
        assert answer.status_code == 422
        assert "open for a long time" in answer.text
        entered = _entered(answer.text)
        assert {name: entered[name] for name in EVERYTHING} == EVERYTHING
        assert stored(desk) == ()
        follow(desk, send(desk, **EVERYTHING, form_token=token_of(answer)))
    assert len(stored(desk)) == 1


def test_a_robot_sees_success_and_nothing_happens(desk: StrictClient) -> None:
    """Who fills the hidden field is confirmed like everybody; nothing is stored or told."""
    page = follow(desk, send(desk, homepage="https://spam.example"))
    assert page.status_code == 200
    assert re.search(r"\d{3}-\d{3}-\d{3}", page.text)
    assert stored(desk) == ()
    assert office(desk).outbox.load().waiting == 0
    assert counted(desk, "trapped") == 1


def test_the_hidden_field_is_hidden_from_everybody(client: StrictClient) -> None:
    """Not reachable by keyboard, not read aloud, not filled in by a browser."""
    field = re.search(r"<input[^>]*name=\"homepage\"[^>]*>", client.get(ENGLISH).text)
    assert field is not None
    assert 'tabindex="-1"' in field[0]
    assert 'autocomplete="off"' in field[0]


def test_too_many_from_one_network_wait(make_client: Make, tmp_path: Path) -> None:
    """The third of two: 429, when to come back, everything kept; mistakes do not count."""
    desk = make_client(data_dir=tmp_path, quote_min_seconds=0, quote_rate="2/hour")
    for _ in range(3):
        assert send(desk, email="ann@").status_code == 422
    for _ in range(2):
        follow(desk, send(desk))
    answer = send(desk, **EVERYTHING)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    entered = _entered(answer.text)
    assert {name: entered[name] for name in EVERYTHING} == EVERYTHING
    assert (len(stored(desk)), counted(desk, "limited")) == (2, 1)


def test_a_counter_that_fails_lets_people_through(
    desk: StrictClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken rate limiter costs no quote and is counted."""

    def broken(_address: str) -> int:
        raise RuntimeError("no memory")

    monkeypatch.setattr(office(desk).limiter, "seconds_to_wait", broken)
    follow(desk, send(desk))
    assert (len(stored(desk)), counted(desk, "limiter_failed")) == (1, 1)


def test_a_database_that_is_down_is_said_to_be_down(
    make_client: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is acknowledged that is not stored: 503, whom to write to, everything kept."""
    desk = make_client(
        data_dir=tmp_path, quote_min_seconds=0, database_url="postgresql://nobody@127.0.0.1:1/x"
    )
    answer = send(desk, **EVERYTHING)
    assert answer.status_code == 503
    assert "sales@example.com" in answer.text
    entered = _entered(answer.text)
    assert {name: entered[name] for name in EVERYTHING} == EVERYTHING
    monkeypatch.setitem(office(desk).__dict__, "storage", Storage(f"sqlite:///{tmp_path / 'q.db'}"))
    del office(desk).__dict__["repository"]
    follow(desk, send(desk, **EVERYTHING, form_token=token_of(answer)))
    assert len(stored(desk)) == 1


# --- what nobody should send ----------------------------------------------------------------------


def test_a_form_on_another_site_reaches_nothing(desk: StrictClient) -> None:
    """A cross-site post is refused before it is read."""
    filled = {"email": "ann@example.com", "form_token": open_form(desk)}
    answer = desk.post(ENGLISH, data=filled, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403
    assert stored(desk) == ()


@pytest.mark.parametrize("name", ["email", "message", "start_log", "form_token", "homepage", "x"])
def test_a_field_of_ten_megabytes_is_refused(desk: StrictClient, name: str) -> None:
    """Far more than anybody types is refused by its size, in any field."""
    answer = desk.post(ENGLISH, data={"email": "a@example.com", name: "x" * 10_000_000})
    assert answer.status_code == 413
    assert stored(desk) == ()


def test_a_long_log_fits(desk: StrictClient) -> None:
    """The longest log that is taken arrives whole, even where each sign needs three bytes."""
    log = "€" * 200_000
    follow(desk, send(desk, start_log=log))
    assert stored(desk)[0].contact.start_log == log


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff\xfe%%%&=&==&", "application/x-www-form-urlencoded"),
        (b"email=a%40b.example&" + b"x=1&" * 5_000, "application/x-www-form-urlencoded"),
        (b"--b\r\nbroken", "multipart/form-data; boundary=b"),
        (b"broken", "multipart/form-data"),
        (b"{}", "application/json"),
        (b"\0" * 100, "text/plain"),
        (b"", ""),
    ],
)
def test_no_body_makes_the_page_fail(desk: StrictClient, body: bytes, kind: str) -> None:
    """Broken, foreign and empty bodies get a page below 500."""
    answer = desk.post(ENGLISH, content=body, headers={"content-type": kind} if kind else {})
    assert 400 <= answer.status_code < 500
    assert stored(desk) == ()


@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25
)  # each example is several pages
@given(
    fields=st.dictionaries(
        st.sampled_from([*EVERYTHING, "form_token", "unknown"]),
        st.text(st.characters(codec="utf-8"), max_size=80),
    )
)
def test_any_entry_is_kept_or_stored(desk: StrictClient, fields: dict[str, str]) -> None:
    """Whatever is typed, the answer is a confirmation, or the form with exactly that in it."""
    answer = send(desk, **fields)
    if answer.status_code == 303:
        assert desk.get(answer.headers["location"]).status_code == 200
        return
    assert answer.status_code in {422, 429}
    entered = _entered(answer.text)
    for name in ("name", "company", "message"):
        # HTML knows one kind of line break, none in an input, and no control signs
        typed, shown = (
            re.sub(r"[\r\n]", "", NOT_IN_PAGES.sub("", text)).strip()
            for text in (fields.get(name, ""), entered[name])
        )
        assert typed == shown


def test_the_address_keeps_answers_only(desk: StrictClient) -> None:
    """Nothing personal ever stands in an address: neither the form's nor the confirmation's."""
    answer = send(desk, **EVERYTHING)
    location: Any = answer.headers["location"]
    assert "ann" not in location.lower()
    assert "=" + EVERYTHING["phone"] not in location
