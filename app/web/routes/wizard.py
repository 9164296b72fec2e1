"""The guided flow: one question a page. An answer leads on by redirect, so Back always works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.models import CatalogueModel
from app.core.layout import Layout
from app.core.reasons import Reason
from app.web.case import Case, read_case
from app.web.composite_choices import KEPT, LAYOUT_FIELDS
from app.web.errors import KEEP_ADDRESS
from app.web.locale import page
from app.web.render import Renderer
from app.web.view_models.answered import answered_before
from app.web.view_models.choices import makers_of, models_found, offered_cards, other_cards
from app.wizard.card_choice import layout_of
from app.wizard.flow import next_step, previous_step, progress, redirect_from
from app.wizard.inputs import UNSURE
from app.wizard.layouts import layouts_for
from app.wizard.options import (
    COMMON_KV_CACHE_DTYPES,
    NEVER_WORKS,
    checkpoint_options,
    kv_cache_dtype_options,
    unsure_checkpoint,
)
from app.wizard.steps import BY_CODE, QUESTIONS, WizardStep

router = APIRouter()

PATHS: Final = {
    "model": ("/auslegung/modell", "/sizing/model"),
    "precision": ("/auslegung/praezision", "/sizing/precision"),
    "gpu": ("/auslegung/karten", "/sizing/gpu"),
    "layout": ("/auslegung/aufteilung", "/sizing/layout"),
    "context": ("/auslegung/kontext", "/sizing/context"),
}
UNPROCESSABLE: Final = 422
TOO_SMALL: Final = frozenset({"weights_do_not_fit", "no_memory_for_kv_cache"})
# What another model takes the place of.
MODEL_FIELDS: Final = (
    "model", "revision", "checkpoint", "hf_config", "hf_quant_config", "assume_plain_decoder",
    "spec",
)  # fmt: skip
FROM_CHECK: Final = ("from", "check")

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One way to split, as a choice. `never` where vLLM refuses it whatever the memory."""

    value: str
    layout: Layout
    reason: Reason | None
    never: bool


def endpoint_for(step: WizardStep) -> Endpoint:
    """Return what answers a question's address: the question, what is wrong, or the next page."""

    async def ask(request: Request) -> Response:
        case = read_case(request)
        open_before = redirect_from(step, case.answers, case.form.problems)
        if open_before is not None:
            return _go(case, open_before)
        wrong = case.form.problems_of(step.fields)
        if "go" not in case.form.page:
            return _show(case, step, failed=False)
        if wrong or not step.is_answered(case.answers):
            return _show(case, step, failed=True)
        following = next_step(
            step, case.answers, case.form.problems, from_check=_is_from_check(case)
        )
        return _go(case, following)

    return ask


def _is_from_check(case: Case) -> bool:
    return case.form.page.get("from") == "check"


def _go(case: Case, step: WizardStep) -> Response:
    pairs = [*case.form.pairs()]
    if _is_from_check(case) and step.is_question:
        pairs.append(FROM_CHECK)
    return RedirectResponse(case.path(step.code, pairs), 303)


def _show(case: Case, step: WizardStep, *, failed: bool) -> Response:
    form = case.form.showing(step.fields if failed else ())
    kept = [*case.form.pairs(without=step.fields)]
    if _is_from_check(case):
        kept.append(FROM_CHECK)
    context = case.context(
        form=form,
        kept=[*kept, *case.frame()],
        section="model",
        progress=progress(step),
        back=_back(case, step),
        answered=answered_before(
            step, case.answers, case.catalogue, lambda code: case.path(code, case.form.pairs())
        ),
        **_OFFERS[step.code](case),
    )
    renderer: Renderer = case.request.app.state.renderer
    return renderer.page(
        case.request,
        f"wizard/{step.code}.html",
        block="models" if step.code == "model" else None,
        status=UNPROCESSABLE if failed else 200,
        headers=KEEP_ADDRESS if failed else None,
        **context,
    )


def _back(case: Case, step: WizardStep) -> str:
    """Return where Back leads: the check page, the question before, the start."""
    pairs = case.form.pairs()
    if _is_from_check(case):
        return case.path("check", pairs)
    before = previous_step(step)
    return case.path("start") if before is None else case.path(before.code, pairs)


def _offer_models(case: Case) -> dict[str, Any]:
    search = case.form.page.get("search", "")
    found = models_found(case.catalogue, search)
    rest = [*case.form.pairs(without=MODEL_FIELDS)]
    if _is_from_check(case):
        rest.append(FROM_CHECK)

    def model_href(model: CatalogueModel) -> str:
        return case.path("precision", [("model", model.slug), *rest])

    return {
        "search": search,
        "found": len(found),
        "makers": makers_of(found),
        "model_href": model_href,
    }


def _offer_precisions(case: Case) -> dict[str, Any]:
    dtypes = kv_cache_dtype_options(case.answers, case.catalogue)
    return {
        "checkpoints": checkpoint_options(case.answers, case.catalogue),
        "unsure_checkpoint": unsure_checkpoint(case.answers, case.catalogue),
        "kv_cache_dtypes": [each for each in dtypes if each.value in COMMON_KV_CACHE_DTYPES],
    }


def _offer_cards(case: Case) -> dict[str, Any]:
    answers = case.answers
    chosen = UNSURE
    if answers.server is not None:
        chosen = f"server:{answers.server.lower()}"
    elif answers.gpu is not None:
        chosen = f"gpu:{answers.gpu.lower()}"
    cards = offered_cards(case.catalogue)
    return {
        "cards": cards,
        "other_cards": [
            *(group.gpu for group in cards if chosen == f"gpu:{group.gpu.slug}"),
            *other_cards(case.catalogue),
        ],
        "slices": case.catalogue.slices.values(),
        "chosen_card": chosen,
    }


def _offer_layouts(case: Case) -> dict[str, Any]:
    answers, prepared = case.answers, case.form.prepared
    was_answered = any(name in LAYOUT_FIELDS for name, _ in case.form.pairs())
    chosen = UNSURE
    choices = []
    for row in layouts_for(prepared) if prepared.request else ():
        reason = row.result.reason
        if reason is not None and reason.code not in NEVER_WORKS | TOO_SMALL:
            reason = None  # the length of a request is asked later
        value = _split_value(row.layout)
        if value == KEPT and not row.chosen:
            continue  # the question offers copies and groups; the result shows the rest
        if was_answered and row.layout == layout_of(answers):
            chosen = value
        choices.append(
            LayoutChoice(value, row.layout, reason, bool(reason and reason.code in NEVER_WORKS))
        )
    if UNSURE in (chosen, "") or "tensor_parallel_size" in answers.unsure:
        chosen = UNSURE
    return {"layouts": choices, "chosen_split": chosen}


def _split_value(layout: Layout) -> str:
    """Return the value of a choice; "kept" for a layout that the page has no name for."""
    plain = Layout(tensor_parallel_size=layout.tensor_parallel_size, replicas=layout.replicas)
    return f"{layout.tensor_parallel_size}x{layout.replicas}" if layout == plain else KEPT


def _offer_nothing(_case: Case) -> dict[str, Any]:
    return {}


_OFFERS: Final[dict[str, Callable[[Case], dict[str, Any]]]] = {
    "model": _offer_models,
    "precision": _offer_precisions,
    "gpu": _offer_cards,
    "layout": _offer_layouts,
    "context": _offer_nothing,
}

for _step in QUESTIONS:
    _german, _english = PATHS[_step.code]
    page(router, _step.code, de=_german, en=_english)(endpoint_for(BY_CODE[_step.code]))
