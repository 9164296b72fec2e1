"""The whole path to a sent quote, as people and embedding sites meet it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, FrameLocator, Page, expect

from app.quotes.delivery.mail import Letterhead, Links, Mails
from app.quotes.delivery.smtp import print_mail
from app.quotes.office import Office
from app.quotes.outbox import Delivery
from app.quotes.quote import Quote
from app.quotes.request import Contact
from app.web.routes import quote as routes
from tests.browser.conftest import Watch
from tests.quotes.drafts import ANSWERS, llama_on_one_card

QUERY = urlencode(ANSWERS)
FORMS = {"de": f"/de/angebot?{QUERY}", "en": f"/en/quote?{QUERY}"}
LABELS = {
    "de": {"mail": "E-Mail-Adresse", "send": "Anfrage senden", "quick": "sehr schnell",
           "received": "Angekommen", "name": "Name"},
    "en": {"mail": "E-mail address", "send": "Send the request", "quick": "very quick",
           "received": "Received", "name": "Name"},
}  # fmt: skip
REFERENCE = re.compile(r"\d{3}-\d{3}-\d{3}")
Axe = Callable[[Page], Any]
Places = Page | FrameLocator


def office_of(app: FastAPI) -> Office:
    """Return the office behind the live server."""
    office: Office = app.state.office
    return office


def last_quote(app: FastAPI) -> Quote:
    """Return the newest stored request."""
    return office_of(app).repository.search().quotes[0]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Fill in forms at a person's pace without waiting; the value switches that on and off."""

    def switch(on: bool) -> None:  # noqa: FBT001
        monkeypatch.setattr(routes, "too_fast", lambda *_: not on)

    switch(True)  # noqa: FBT003
    return switch


def fill_and_send(place: Places, language: str, email: str) -> None:
    """Fill in the form and press the button."""
    words = LABELS[language]
    place.get_by_label(words["mail"]).fill(email)
    place.get_by_label(re.compile(rf"^{words['name']}\b")).fill("Ann Example")
    place.get_by_role("button", name=words["send"]).click()


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_sends_a_request(
    browser: Browser,
    base_url: str,
    app: FastAPI,
    language: str,
    scripts: bool,  # noqa: FBT001
    patient: Callable[[bool], None],
) -> None:
    """With and without JavaScript: too quick, nothing lost, sent, confirmed with a number."""
    words = LABELS[language]
    context = browser.new_context(base_url=base_url, java_script_enabled=scripts)
    page = context.new_page()
    page.goto(FORMS[language])
    email = f"{language}{scripts}@example.com"
    patient(False)  # noqa: FBT003
    fill_and_send(page, language, email)
    expect(page.get_by_role("alert")).to_contain_text(words["quick"])
    expect(page.get_by_label(words["mail"])).to_have_value(email)
    patient(True)  # noqa: FBT003
    page.get_by_role("button", name=words["send"]).click()
    expect(page.get_by_text(words["received"], exact=True)).to_be_visible()
    quote = last_quote(app)
    assert (quote.contact.email, quote.language) == (email, language)
    expect(page.get_by_role("heading", level=1)).to_contain_text(quote.reference)
    assert context.cookies() == []
    context.close()


def test_a_mistake_is_where_the_focus_is(page: Page, watch: Watch) -> None:
    """After a mistake the summary has the focus, and its link leads to the field."""
    watch.expect("status of 422")
    page.goto(FORMS["en"])
    fill_and_send(page, "en", "ann@")
    expect(page.locator("#errors")).to_be_focused()
    assert page.title().startswith("Error:")
    page.locator("#errors a").click()
    expect(page.get_by_label("E-mail address")).to_be_focused()


def test_the_form_is_sent_by_keyboard_alone(page: Page, watch: Watch, app: FastAPI) -> None:
    """Tab reaches every field but the hidden one; Enter sends."""
    watch.expect("status of 422")
    page.goto(FORMS["en"])
    page.get_by_label("E-mail address").focus()
    page.keyboard.type("keys@example.com")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.name"))
    assert {"name", "company", "phone", "country", "quantity", "message"} <= set(reached)
    assert "homepage" not in reached
    page.get_by_label("E-mail address").press("Enter")
    expect(page.get_by_text("Received", exact=True)).to_be_visible()
    assert last_quote(app).contact.email == "keys@example.com"


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_a_quote_is_accessible(
    page: Page, watch: Watch, axe: Axe, app: FastAPI, language: str, scheme: str
) -> None:
    """axe finds nothing on form, mistakes, confirmation, own page and question, light and dark."""
    watch.expect("status of 422")
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(FORMS[language])
    assert axe(page) == []
    fill_and_send(page, language, "ann@")
    assert axe(page) == []
    fill_and_send(page, language, "ann@example.com")
    expect(page.get_by_text(LABELS[language]["received"], exact=True)).to_be_visible()
    assert axe(page) == []
    quote = last_quote(app)
    signer = office_of(app).signer
    path = {"de": "angebot", "en": "quote"}[language]
    own = f"/{language}/{path}/{quote.id}"
    page.goto(f"{own}?token={signer.link_token(quote.id)}")
    assert axe(page) == []
    page.locator("a.button").last.click()
    expect(page.locator("form[method=post]")).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_form_fits_a_phone(page: Page, language: str) -> None:
    """At 320 pixels nothing scrolls sideways and no button's text is cut off."""
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(FORMS[language])
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(
        "[...document.querySelectorAll('.button')].every(b => b.scrollWidth <= b.clientWidth + 1)"
    )


@pytest.fixture
def host(base_url: str) -> Iterator[str]:
    """Serve a page of another site that shows the form in a frame; the value is its address."""
    page = (
        '<!DOCTYPE html><html lang="en"><head><title>Host</title></head><body><iframe title="f"'
        ' width="700" height="1500" src="{}"></iframe></body></html>'
    )

    class Handler(BaseHTTPRequestHandler):
        """Answers with the frame of the language asked for."""

        def do_GET(self) -> None:
            """Show the host's page."""
            language = self.path.strip("/")
            body = page.format(f"{base_url}/embed{FORMS.get(language, '')}").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    # localhost and 127.0.0.1 are different sites to a browser
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_request_is_sent_from_another_site(
    browser: Browser, app: FastAPI, host: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a frame of a foreign site: sent and confirmed, without a cookie."""
    for middleware in _headers_of(app):
        monkeypatch.setattr(middleware, "frame_ancestors", (host,))
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{host}/{language}")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", level=1)).to_be_visible()
    fill_and_send(frame, language, f"embedded-{language}@example.com")
    expect(frame.get_by_role("heading", level=1)).to_contain_text(REFERENCE)
    assert last_quote(app).contact.email == f"embedded-{language}@example.com"
    assert context.cookies() == []
    context.close()


def _headers_of(app: FastAPI) -> list[Any]:
    found = []
    layer: Any = app.middleware_stack
    while layer is not None:
        if hasattr(layer, "frame_ancestors"):
            found.append(layer)
        layer = getattr(layer, "app", None)
    return found


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("template", ["customer", "desk"])
def test_a_mail_is_readable_everywhere(
    page: Page, axe: Axe, app: FastAPI, tmp_path: Path, language: str, template: str
) -> None:
    """A mail fits phone and desktop, axe finds nothing, and it asks no server for anything."""
    sample = _sample(app, language)
    head = Letterhead(
        "Example Servers",
        "w@example.com",
        "s@example.com",
        sample.language,
        180,
        "https://x.example",
    )
    links = Links(lambda _: "https://x.example/own", lambda _: "https://x.example/desk")
    sender = Mails(template, head, app.state.renderer.text, links, transport=print_mail)
    delivery = Delivery(
        1, sample.id, sample.reference, "desk_mail", "created", "k" * 32, sample.created_at, 1
    )
    body = sender.message(delivery, sample).get_body(("html",))
    assert body is not None
    file = tmp_path / "mail.html"
    file.write_text(body.get_content(), encoding="utf-8")
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    # a mail is no page: what it stands in gives it its landmarks
    assert [each for each in axe(page) if each["id"] not in {"region", "landmark-one-main"}] == []


def _sample(app: FastAPI, language: str) -> Quote:
    """Return a request with every field filled in, and one name that is far too long."""
    contact = Contact(
        email="ann@example.com", name="Ann " + "Example" * 20, company="Example GmbH",
        phone="+49 30 1", country="DE", quantity=2, wished_date="March",
        message="two\nlines", start_log="INFO log", marketing=True,
    )  # fmt: skip
    moment = datetime(2026, 11, 29, tzinfo=UTC)
    return Quote(
        id="0" * 32,
        reference="482-719-536",
        form_id="0" * 32,
        created_at=moment,
        language="de" if language == "de" else "en",
        status="new",
        contact=contact,
        sizing=llama_on_one_card(app),
        notice_version="test",
        marketing_at=moment,
        marketing_version="test",
    )
