"""Which language a person gets, and that links stay where they are."""

import pytest
from fastapi import APIRouter

from app.web.locale import PLACES, Place, negotiate, page
from tests.strict_client import StrictClient


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("*", "en"),
        ("fr", "en"),
        ("de", "de"),
        ("DE-AT,en;q=0.8", "de"),
        ("en-GB,de;q=0.9", "en"),
        ("fr,de;q=0.4,en;q=0.3", "de"),
        ("de;q=0,en;q=0.1", "en"),
        ("de;q=abc", "en"),
        ("den", "en"),
    ],
)
def test_negotiation_follows_quality(header: str, language: str) -> None:
    """The offered language with the highest quality wins; anything unreadable counts as none."""
    assert negotiate(header) == language


@pytest.mark.parametrize(("path", "prefix"), [("/", ""), ("/embed/", "/embed")])
def test_bare_address_redirects_by_language(client: StrictClient, path: str, prefix: str) -> None:
    """The bare address redirects by Accept-Language, keeps the answers and says that it varies."""
    answer = client.get(f"{path}?gpu=h200-nvl&v=1", headers={"accept-language": "de"})
    assert answer.status_code == 302
    assert answer.headers["location"] == f"{prefix}/de/?gpu=h200-nvl&v=1"
    assert "Accept-Language" in answer.headers["vary"]
    assert client.get(path).headers["location"] == f"{prefix}/en/"


def test_page_registers_both_languages_and_frames() -> None:
    """One endpoint stands under its German and its English path, with and without /embed."""
    router = APIRouter()

    @page(router, "workbench", de="/rechner", en="/workbench")
    async def workbench() -> None:
        """Stand in for a page."""

    assert [route.path for route in router.routes] == [  # type: ignore[attr-defined]
        "/de/rechner",
        "/en/workbench",
        "/embed/de/rechner",
        "/embed/en/workbench",
    ]


def test_page_can_refuse_frames() -> None:
    """A page that is not embeddable has no address below /embed."""
    router = APIRouter()

    @page(router, "desk", de="/desk", en="/desk", embeddable=False)
    async def desk() -> None:
        """Stand in for a page."""

    assert len(router.routes) == 2


def test_places_know_their_prefix_and_counterpart() -> None:
    """A place names its prefix, its route suffix and the same place in the other language."""
    assert [place.prefix for place in PLACES] == ["/de", "/en", "/embed/de", "/embed/en"]
    assert [str(place) for place in PLACES] == ["de", "en", "embed-de", "embed-en"]
    assert Place("de", embedded=True).other() == Place("en", embedded=True)
