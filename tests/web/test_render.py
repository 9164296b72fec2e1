"""Pages and blocks: the same template for everybody, a part of it for htmx."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from app.web.assets import Assets
from app.web.locale import page
from app.web.render import Renderer, TranslationsMissingError, make_environment
from tests.strict_client import StrictClient

TEMPLATE = """<!DOCTYPE html><html lang="{{ language }}"><head><title>T</title></head><body>
{% for a in alternates %}<a hreflang="{{ a.language }}" href="{{ a.href }}">x</a>{% endfor %}
<main>{% block result %}<h1>{{ path_to('sheet', {'a': 'b c'}) }}</h1>{% endblock %}</main>
</body></html>"""
HX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[StrictClient]:
    """Return a client for an application with one page."""
    (tmp_path / "sheet.html").write_text(TEMPLATE, encoding="utf-8")
    (tmp_path / "mail.txt").write_text("{{ name }}: {{ 1234|number }}", encoding="utf-8")
    mo = tmp_path / "de" / "LC_MESSAGES" / "messages.mo"
    mo.parent.mkdir(parents=True)
    source = Path(__file__).parents[2] / "app" / "i18n" / "de" / "LC_MESSAGES" / "messages.mo"
    mo.write_bytes(source.read_bytes())
    app, router = FastAPI(), APIRouter()
    app.state.renderer = Renderer(
        templates=tmp_path,
        translations=tmp_path,
        assets=Assets(tmp_path, watch=False),
        url_path_for=app.url_path_for,
        data_version="2026-01-02",
        reload=False,
    )

    @page(router, "sheet", de="/blatt", en="/sheet")
    async def sheet(request: Request) -> Response:
        renderer: Renderer = request.app.state.renderer
        return renderer.page(request, "sheet.html", block="result")

    app.include_router(router)
    with StrictClient(app) as client:
        yield client


def test_htmx_gets_the_block_everybody_else_the_page(client: StrictClient) -> None:
    """One address answers with the page or, for htmx, with its named block."""
    assert "<html" in client.get("/de/blatt").text
    part = client.get("/de/blatt", headers=HX)
    assert part.text.startswith("<h1>")
    assert part.headers["vary"] == "HX-Request, HX-Request-Type"


def test_full_request_of_htmx_gets_the_page(client: StrictClient) -> None:
    """Back and Forward get the whole page, though htmx asks."""
    assert "<html" in client.get("/de/blatt", headers={**HX, "HX-Request-Type": "full"}).text


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/de/blatt", "/de/blatt?a=b+c"),
        ("/en/sheet", "/en/sheet?a=b+c"),
        ("/embed/de/blatt", "/embed/de/blatt?a=b+c"),
    ],
)
def test_links_stay_in_language_and_frame(client: StrictClient, path: str, link: str) -> None:
    """`path_to` leads to the page in the same language, inside the same frame."""
    assert f"<h1>{link}</h1>" in client.get(path).text


def test_alternates_keep_the_answers(client: StrictClient) -> None:
    """The link to the other language is the same page with the same query string."""
    text = client.get("/de/blatt?gpu=h200-nvl&v=1").text
    assert 'hreflang="en" href="/en/sheet?gpu=h200-nvl&amp;v=1"' in text


def test_unchanged_page_is_not_sent_again(client: StrictClient) -> None:
    """A browser that has the page gets 304; the block has another tag than the page."""
    first = client.get("/de/blatt")
    tag = first.headers["etag"]
    again = client.get("/de/blatt", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["vary"] == first.headers["vary"]
    assert client.get("/de/blatt", headers={**HX, "if-none-match": tag}).status_code == 200


def test_text_is_rendered_without_a_request(client: StrictClient) -> None:
    """Mails are rendered in a chosen language, unescaped, as they are plain text."""
    renderer: Renderer = client.served.state.renderer
    assert renderer.text("de", "mail.txt", name="A & B") == "A & B: 1.234"


def test_missing_translation_is_said_at_start(tmp_path: Path) -> None:
    """Without the compiled catalogue the start fails and names the command that helps."""
    with pytest.raises(TranslationsMissingError, match="make translations"):
        make_environment("de", templates=tmp_path, translations=tmp_path, reload=False)


def test_compiled_templates_need_no_file_any_more(client: StrictClient, tmp_path: Path) -> None:
    """After compiling at start a first page reads and compiles nothing, in either language."""
    client.app.state.renderer.compile_templates()  # type: ignore[attr-defined]
    for template in tmp_path.glob("*.*"):
        template.unlink()
    assert client.get("/de/blatt").status_code == client.get("/en/sheet").status_code == 200
