"""Language and frame of a page, read from its path: /de/…, /en/…, /embed/de/…, /embed/en/… ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from starlette.requests import Request

Language = Literal["de", "en"]
LANGUAGES: Final[tuple[Language, ...]] = ("de", "en")
FALLBACK: Final[Language] = "en"
EMBED: Final = "/embed"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    """Where a page stands: its language, and whether it is shown inside another site."""

    language: Language
    embedded: bool = False

    @property
    def prefix(self) -> str:
        """Start of every path in this place, without a closing slash."""
        return f"{EMBED if self.embedded else ''}/{self.language}"

    def __str__(self) -> str:
        """Return the suffix of route names in this place: de, en, embed-de, embed-en."""
        return f"embed-{self.language}" if self.embedded else self.language

    def other(self) -> "Place":
        """Return the same place in the other language."""
        return Place("en" if self.language == "de" else "de", self.embedded)


PLACES: Final = tuple(
    Place(language, embedded) for embedded in (False, True) for language in LANGUAGES
)


def negotiate(accept_language: str) -> Language:
    """Choose the best offered language for an Accept-Language header.

    A malformed quality counts as 0, an unknown header as `FALLBACK`.
    """
    best: Language = FALLBACK
    best_quality = 0.0
    for part in accept_language.split(","):
        tag, _, parameters = part.strip().partition(";")
        quality = _quality(parameters)
        for language in LANGUAGES:
            if tag.lower().split("-")[0] == language and quality > best_quality:
                best, best_quality = language, quality
    return best


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


def place_of(request: Request) -> Place:
    """Return the place of a request; outside the known prefixes Accept-Language decides."""
    path = request.scope["path"]
    for place in PLACES:
        if path == place.prefix or path.startswith(f"{place.prefix}/"):
            return place
    language = negotiate(request.headers.get("accept-language", ""))
    return Place(language, embedded=path.startswith(f"{EMBED}/"))


def page(
    router: APIRouter,
    name: str,
    *,
    de: str,
    en: str,
    methods: tuple[str, ...] = ("GET", "HEAD"),
    embeddable: bool = True,
) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint under its German and English path, and under /embed for both.

    Args:
        router: the router of the module.
        name: name of the page; its routes are called "name:de", "name:en", "name:embed-de", ….
        de: path below /de, starting with a slash.
        en: path below /en, starting with a slash.
        methods: HTTP methods the endpoint answers.
        embeddable: whether the page may be shown inside another site.
    """
    slugs = {"de": de, "en": en}

    def register(endpoint: Endpoint) -> Endpoint:
        for place in PLACES:
            if place.embedded and not embeddable:
                continue
            router.add_api_route(
                place.prefix + slugs[place.language],
                endpoint,
                methods=list(methods),
                name=f"{name}:{place}",
                include_in_schema=False,
                response_class=HTMLResponse,
            )
        return endpoint

    return register
