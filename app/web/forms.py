"""A form as it was filled in: what it means, what is wrong with it, and every text as entered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from app.catalog.catalogue import Catalogue
from app.catalog.model_search import find_model, search_models
from app.web.composite_choices import write_out
from app.wizard.answers import Answers, Notice, ParsedAnswers, Problem, parse_answers
from app.wizard.inputs import BY_NAME, UNSURE
from app.wizard.permalink import query_pairs, text_of
from app.wizard.sizing_request import Prepared, to_request

# Names in an address that belong to a page and not to the answers.
PAGE_KEYS: Final = frozenset({"accent", "from", "go", "hub", "other_version", "search", "theme"})
MAX_NAMED_MODELS: Final = 4


@dataclass(frozen=True, slots=True)
class Form:
    """One request's answers.

    `problems` are those of reading the texts, then those of the catalogue; `entered` holds every
    known name's text. `prepared` is what the readable answers mean.
    """

    answers: Answers
    entered: dict[str, str]
    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...]
    prepared: Prepared
    page: dict[str, str]

    def value(self, name: str) -> str:
        """Return the text of a field: as entered, else what stands for it."""
        entered = self.entered.get(name, "")
        if entered.strip():
            return entered
        if name in self.answers.unsure:
            return UNSURE
        value = getattr(self.answers, name)
        return "" if value is None or value == 0.0 else text_of(value)

    def problem(self, name: str) -> Problem | None:
        """Return the first problem of a field."""
        return next((each for each in self.problems if each.field == name), None)

    def problems_of(self, fields: Iterable[str]) -> tuple[Problem, ...]:
        """Return the problems of some fields, one for each field."""
        found = (self.problem(name) for name in fields)
        return tuple(each for each in found if each is not None)

    def showing(self, fields: Iterable[str]) -> Form:
        """Return the form with the problems of some fields alone, for a page that asks for them."""
        return replace(self, problems=self.problems_of(fields))

    def pairs(self, without: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
        """Return the answers as name and text, to travel along with a form; some left out."""
        left_out = set(without)
        written = dict(query_pairs(self.answers) or ())
        broken = {each.field for each in self.problems if each.field in BY_NAME}
        written.update({name: self.entered[name] for name in broken if name in self.entered})
        return tuple(pair for pair in written.items() if pair[0] not in left_out)


def read_form(pairs: Iterable[tuple[str, str]], language: str, catalogue: Catalogue) -> Form:
    """Read the pairs of a page's query; empty fields count as absent."""
    given = write_out(pair for pair in pairs if pair[1].strip())
    page = {name: text for name, text in given if name in PAGE_KEYS}
    return make_form(parse_answers(given, lang=language, page_keys=PAGE_KEYS), page, catalogue)


def make_form(parsed: ParsedAnswers, page: dict[str, str], catalogue: Catalogue) -> Form:
    """Put together what was read and what the catalogue makes of it."""
    answers, found = _with_model(parsed.answers, catalogue)
    answers = _with_fitting_server(_with_fitting_checkpoint(answers, catalogue), catalogue)
    prepared = to_request(answers, catalogue)
    entered = dict(parsed.raw)
    if answers.gpu_total_memory_bytes != prepared.answers.gpu_total_memory_bytes:
        # what vLLM saw of the card of a start log says nothing about the one chosen since
        answers = answers.with_changes(gpu_total_memory_bytes=None)
        entered.pop("gpu_total_memory_bytes", None)
    named = {each.field for each in found}
    problems = (*parsed.problems, *found, *(p for p in prepared.problems if p.field not in named))
    return Form(
        answers=answers,
        entered=entered,
        problems=_first_of_each(problems),
        notices=(*parsed.notices, *_data_notices(parsed, catalogue)),
        prepared=prepared,
        page=page,
    )


def _with_model(answers: Answers, catalogue: Catalogue) -> tuple[Answers, tuple[Problem, ...]]:
    """Read a model's name, or the part of one that fits a single model, as its slug."""
    typed = answers.model
    if typed is None or answers.hf_config is not None:
        return answers, ()
    if find_model(catalogue.models, typed) is not None:
        return answers, ()
    fitting = search_models(catalogue.models, typed, MAX_NAMED_MODELS)
    if len(fitting) == 1 or (fitting and fitting[0].name.casefold() == typed.casefold()):
        return answers.with_changes(model=fitting[0].slug), ()
    if not fitting:
        return answers, ()
    names = ", ".join(each.name for each in fitting)
    return answers, (Problem("several_models", "model", typed, (("names", names),)),)


def _with_fitting_checkpoint(answers: Answers, catalogue: Catalogue) -> Answers:
    """Let the model decide: a checkpoint of another model becomes its precision, if it has that."""
    model = find_model(catalogue.models, answers.model or "")
    other = find_model(catalogue.models, answers.checkpoint or "")
    if model is None or other is None or other.model is model.model:
        return answers
    named = answers.checkpoint or ""
    precision = other.model.select(named)[0].precision
    return answers.with_changes(checkpoint=precision if model.model.select(precision) else None)


def _with_fitting_server(answers: Answers, catalogue: Catalogue) -> Answers:
    """Let the card decide: a server of other cards becomes one of the same size with this card.

    A server without a card names its own.
    """
    server = catalogue.servers.get((answers.server or "").lower())
    card = (answers.gpu or "").lower()
    if server is not None and not card and "gpu" not in answers.unsure:
        return answers.with_changes(gpu=server.gpu)
    if server is None or catalogue.card(card) is None or server.gpu == card:
        return answers
    same_size = (
        each.slug
        for each in catalogue.servers.values()
        if each.gpu == card and each.cards == server.cards
    )
    return answers.with_changes(server=next(same_size, None))


def _data_notices(parsed: ParsedAnswers, catalogue: Catalogue) -> tuple[Notice, ...]:
    made = parsed.data_version
    if made is None or made == catalogue.data_version:
        return ()
    return (Notice("other_data", "data", made),)


def _first_of_each(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    kept: dict[str, Problem] = {}
    for each in problems:
        kept.setdefault(each.field, each)
    return tuple(kept.values())
