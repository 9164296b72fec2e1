"""One request's case: its form, its links, and its result once it can be sized."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request

from app.catalog.catalogue import Catalogue
from app.settings import Settings
from app.web.forms import Form, read_form
from app.web.frame import frame_pairs
from app.web.locale import Place, place_of
from app.web.render import Renderer
from app.web.view_models.result_view import Links, ResultView, ResultViews
from app.wizard.answers import Answers
from app.wizard.permalink import permalink, query_pairs

READABLE: Final = "/:,"

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Case:
    """What one address asks for."""

    request: Request
    place: Place
    form: Form

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of this instance."""
        catalogue: Catalogue = self.request.app.state.catalogue
        return catalogue

    @property
    def hub_is_on(self) -> bool:
        """Whether models that are not in the catalogue may be looked up on a hub."""
        settings: Settings = self.request.app.state.settings
        return settings.hub_url is not None

    @property
    def answers(self) -> Answers:
        """The readable answers."""
        return self.form.answers

    def path(self, page: str, pairs: Pairs = ()) -> str:
        """Return the address of another page with answers, in this language and frame."""
        renderer: Renderer = self.request.app.state.renderer
        return _with_query(renderer.path_to(self.place, page), [*pairs, *self.frame()])

    def here(self, answers: Answers) -> str:
        """Return the address of this page with other answers; relative, so equal on every page."""
        return _with_query("", [*(query_pairs(answers) or ()), *self.frame()])

    def permalink(self, answers: Answers) -> str | None:
        """Return the whole address that reproduces a case; None where it would be too long."""
        settings: Settings = self.request.app.state.settings
        link = permalink(answers, self.place.language, self.catalogue.data_version)
        return None if link is None else settings.base_url + link

    def view(self) -> ResultView | None:
        """Return the result; None while an entry is missing or wrong."""
        if self.form.problems:
            return None
        views: ResultViews = self.request.app.state.result_views
        answers = self.answers
        links = Links(
            href=self.here,
            permalink=self.permalink(answers),
            quote=self.path("quote", query_pairs(answers) or ()),
        )
        return views.view(answers, links)

    def context(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - what templates show
        """Return what every page of a sizing shows, and more."""
        return {"form": self.form, "case": self, "catalogue": self.catalogue, **more}

    def frame(self) -> Pairs:
        """Return what an embedding site set, to be kept on every link and form."""
        return frame_pairs(self.request, self.place).items()


def read_case(request: Request, example: Pairs = ()) -> Case:
    """Read the case of a page's address, or the example that a page shows in its place."""
    pairs = tuple(example) or tuple(request.query_params.multi_items())
    form = read_form(pairs, place_of(request).language, request.app.state.catalogue)
    return Case(request, place_of(request), form)


def _with_query(path: str, pairs: list[tuple[str, str]]) -> str:
    query = urlencode(pairs, safe=READABLE)
    return f"{path}?{query}" if query or not path else path
