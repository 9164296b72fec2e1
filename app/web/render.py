"""Templates into answers: the whole page for everybody, one named block of it for htmx."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from babel.support import NullTranslations, Translations
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2_fragments import render_block
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import NoMatchFound

from app.web.assets import Assets
from app.web.filters import filters_for
from app.web.frame import frame_pairs, theme_address
from app.web.locale import LANGUAGES, Language, Place, place_of

VARY: Final = "HX-Request, HX-Request-Type"
PathTo = Callable[..., str]


class TranslationsMissingError(RuntimeError):
    """The compiled German catalogue is not there; `make translations` makes it."""


class UrlPathFor(Protocol):
    """How a route name and its path parameters become a path."""

    def __call__(self, name: str, /, **path_params: Any) -> str:  # noqa: ANN401 - Starlette's own
        """Return the path of a route."""


def wants_block(request: Request) -> bool:
    """Whether htmx asks for a part of a page; Back and Forward restore the whole page."""
    headers = request.headers
    return (
        headers.get("hx-request") == "true"
        and headers.get("hx-request-type", "partial") == "partial"
        and "hx-history-restore-request" not in headers
    )


def make_environment(
    language: Language, *, templates: Path, translations: Path, reload: bool
) -> Environment:
    """Return the Jinja environment of one language.

    Args:
        language: language of its gettext catalogue and of its number and date filters.
        templates: folder of templates.
        translations: folder with LANGUAGE/LC_MESSAGES/messages.mo; English is in the templates.
        reload: notice changed templates, for development.

    Raises:
        TranslationsMissingError: the catalogue is not compiled.
    """
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=select_autoescape(("html", "svg"), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=reload,
        cache_size=-1,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    catalogue: NullTranslations = NullTranslations()
    if language != "en":
        catalogue = Translations.load(translations, [language])
        if not isinstance(catalogue, Translations):
            raise TranslationsMissingError(
                f"{translations}/{language}/LC_MESSAGES/messages.mo is missing; "
                "run `make translations`"
            )
    # jinja2.ext.i18n adds this method at run time
    environment.install_gettext_translations(catalogue, newstyle=True)  # type: ignore[attr-defined]
    environment.filters.update(filters_for(language))
    environment.globals["language"] = language
    return environment


@dataclass(frozen=True)
class Alternate:
    """The current page in another language."""

    language: Language
    href: str


class Renderer:
    """Render pages, blocks and plain texts, in the language of the request."""

    def __init__(
        self, *, templates: Path, translations: Path, assets: Assets, url_path_for: UrlPathFor,
        data_version: str, reload: bool,
    ) -> None:  # fmt: skip
        """Make one environment per language.

        Args:
            templates: folder of templates.
            translations: folder of gettext catalogues.
            assets: static files; `asset('css/app.css')` in a template is their versioned address.
            url_path_for: the application's own.
            data_version: date of the catalogue, shown on every page.
            reload: notice changed templates, for development.
        """
        self.environments: Mapping[Language, Environment] = {
            language: make_environment(
                language, templates=templates, translations=translations, reload=reload
            )
            for language in LANGUAGES
        }
        for environment in self.environments.values():
            environment.globals["asset"] = assets.url
            environment.globals["data_version"] = data_version
        self._url_path_for = url_path_for
        self._path_cached = lru_cache(maxsize=1024)(self._path)

    def _path(self, name: str, params: tuple[tuple[str, str], ...]) -> str:
        return str(self._url_path_for(name, **dict(params)))

    def compile_templates(self) -> None:
        """Compile every template now, which else its first visitor waits for (about 0.5 s)."""
        for environment in self.environments.values():
            for name in environment.list_templates(extensions=("html", "txt")):
                environment.get_template(name)

    def path_to(
        self,
        place: Place,
        name: str,
        query: Mapping[str, object] | None = None,
        /,
        **params: str,
    ) -> str:
        """Return the path of a page in a place: `path_to('workbench', answers)` in a template.

        Args:
            place: language and frame; already bound in templates.
            name: the name given to `locale.page`.
            query: answers that go into the query string.
            params: path parameters.
        """
        path = self._path_cached(f"{name}:{place}", tuple(sorted(params.items())))
        return f"{path}?{urlencode(query)}" if query else path

    def page(
        self,
        request: Request,
        template: str,
        *,
        block: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: object,
    ) -> Response:
        """Answer with a page, or with its named block if htmx asks for a part.

        Args:
            request: decides language, frame, and page or block.
            template: the page's template, relative to templates/.
            block: the block for htmx; None always answers with the whole page.
            status: HTTP status.
            headers: further headers; Cache-Control here replaces "no-cache".
            context: what the template shows.
        """
        place = place_of(request)
        environment = self.environments[place.language]
        names = {**self._about(request, place), **context}
        if block is not None and wants_block(request):
            body = render_block(environment, template, block, names)
        else:
            body = environment.get_template(template).render(names)
        response: Response = HTMLResponse(body, status)
        response.headers["Vary"] = VARY
        response.headers["Cache-Control"] = "no-cache"
        response.headers.update(headers or {})
        return _revalidated(request, response)

    def text(self, language: Language, template: str, **context: object) -> str:
        """Render a template outside a request, such as an e-mail."""
        return self.environments[language].get_template(template).render(context)

    def _about(self, request: Request, place: Place) -> dict[str, object]:
        return {
            "place": place,
            "path_to": self._path_within(place, frame_pairs(request, place)),
            "theme_href": theme_address(request, place),
            "alternates": self._alternates(request, place),
        }

    def _path_within(self, place: Place, kept: Mapping[str, str]) -> PathTo:
        """Return `path_to` for one place; what an embedding site set stays on every link."""

        def path_to(name: str, query: Mapping[str, object] | None = None, /, **params: str) -> str:
            return self.path_to(place, name, {**(query or {}), **kept}, **params)

        return path_to

    def _alternates(self, request: Request, place: Place) -> tuple[Alternate, ...]:
        name, _, _ = getattr(request.scope.get("route"), "name", "").partition(":")
        found = []
        for language in LANGUAGES:
            there = Place(language, place.embedded)
            params = {key: str(value) for key, value in request.path_params.items()}
            try:
                path = self.path_to(there, name, **params)
            except NoMatchFound:
                path = f"{there.prefix}/"
            query = request.url.query
            found.append(Alternate(language, f"{path}?{query}" if query else path))
        return tuple(found)


def _revalidated(request: Request, response: Response) -> Response:
    """Add an entity tag to a good answer; say 304 when the browser has it already."""
    if response.status_code != 200 or response.headers["Cache-Control"] != "no-cache":  # noqa: PLR2004
        return response
    tag = f'W/"{hashlib.sha256(response.body).hexdigest()[:20]}"'
    response.headers["ETag"] = tag
    if tag in request.headers.get("if-none-match", ""):
        kept = {name: response.headers[name] for name in ("ETag", "Vary", "Cache-Control")}
        return Response(status_code=304, headers=kept)
    return response
