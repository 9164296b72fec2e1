"""What was answered so far, question by question, each with the address that changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import CatalogueCheckpoint
from app.catalog.model_search import FoundModel, find_model
from app.catalog.models import CatalogueModel
from app.catalog.servers import Server
from app.core.layout import Layout
from app.wizard.answers import Answers
from app.wizard.card_choice import layout_of
from app.wizard.steps import QUESTIONS, WizardStep


@dataclass(frozen=True, slots=True)
class Answered:
    """One question's answer; what the catalogue does not know is None."""

    step: str
    href: str
    answers: Answers
    layout: Layout
    model: CatalogueModel | None
    checkpoint: CatalogueCheckpoint | None
    server: Server | None


def answered_before(
    step: WizardStep | None,
    answers: Answers,
    catalogue: Catalogue,
    href: Callable[[str], str],
) -> tuple[Answered, ...]:
    """Return the answered questions before a step, or all of them for None."""
    found = find_model(catalogue.models, answers.model or "")
    server = catalogue.servers.get((answers.server or "").lower())
    before = QUESTIONS if step is None else QUESTIONS[: QUESTIONS.index(step)]
    return tuple(
        Answered(
            step=each.code,
            href=href(each.code),
            answers=answers,
            layout=layout_of(answers),
            model=found.model if found else None,
            checkpoint=_checkpoint(answers, found),
            server=server,
        )
        for each in before
        if each.is_answered(answers)
    )


def _checkpoint(answers: Answers, found: FoundModel | None) -> CatalogueCheckpoint | None:
    if found is None:
        return None
    if answers.checkpoint is None and found.checkpoint is not None:
        return found.checkpoint
    return next(iter(found.model.select(answers.checkpoint or "")), None)
