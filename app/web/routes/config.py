"""A page that takes a pasted config.json, says what it read, and sizes that model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.core.reasons import Reason, Refusal
from app.web.case import Case, read_case
from app.web.errors import KEEP_ADDRESS
from app.web.locale import page
from app.web.render import Renderer
from app.web.security import MIB
from app.web.view_models.result_view import Links, ResultView, ResultViews
from app.wizard.answers import Problem
from app.wizard.config_reading import ConfigReading, read_parts
from app.wizard.model_choice import UnusableAnswerError, choose_model
from app.wizard.permalink import query_pairs

router = APIRouter()

PASTED: Final = ("hf_config", "hf_quant_config", "assume_plain_decoder")
# What is asked here when the config is too long for the address of another page.
SIZED_HERE: Final = ("gpu", "tensor_parallel_size", "max_model_len")
MAX_FIELDS: Final = 80
UNPROCESSABLE: Final = 422
PRIVATE: Final = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Read:
    """What came of a pasted config: a description, a problem with it, or a reason to refuse.

    `is_assumed` where its architecture is unknown and was read as a plain decoder.
    """

    reading: ConfigReading | None = None
    is_assumed: bool = False
    problems: tuple[Problem, ...] = ()
    reason: Reason | None = None


async def ask(request: Request) -> Response:
    """Show the form; with a config in the address, what it says."""
    case = await run_in_threadpool(read_case, request)
    return await run_in_threadpool(_page, case, posted=False)


async def read(request: Request) -> Response:
    """Read what was pasted and show it, or what is wrong with it (422)."""
    async with request.form(max_fields=MAX_FIELDS, max_files=0, max_part_size=MIB) as fields:
        pairs = [(name, text) for name, text in fields.multi_items() if isinstance(text, str)]
    # an empty form is a form too, not an address without answers
    case = await run_in_threadpool(read_case, request, pairs or [("hf_config", "")])
    return await run_in_threadpool(_page, case, posted=True)


def _page(case: Case, *, posted: bool) -> Response:
    answers = case.answers
    found = _read(case, posted=posted)
    link = None
    if found.reading is not None and query_pairs(answers) is not None:
        link = case.path("workbench", case.form.pairs())
    renderer: Renderer = case.request.app.state.renderer
    context: dict[str, Any] = case.context(
        texts={name: _text(case, name) for name in PASTED[:2]},
        reading=found.reading,
        is_assumed=found.is_assumed,
        reason=found.reason,
        problems=found.problems,
        link=link,
        r=_sized(case) if found.reading is not None and link is None else None,
        carried_pairs=_carried(case, without=() if link else SIZED_HERE),
        cards=case.catalogue.gpus.values(),
    )
    status = UNPROCESSABLE if found.problems else 200
    headers = {**PRIVATE, **(KEEP_ADDRESS if found.problems else {})} if posted else None
    return renderer.page(
        case.request, "config/config.html", status=status, headers=headers, **context
    )


def _read(case: Case, *, posted: bool) -> Read:
    """Describe the config of a case. Problems of other fields wait until a card is chosen."""
    problems = case.form.problems_of((*PASTED[:2], "spec"))
    if problems:
        return Read(problems=problems)
    if case.answers.hf_config is None:
        return Read(problems=(Problem("missing", "hf_config", ""),) if posted else ())
    alone = replace(case.answers, model=None, checkpoint=None)
    try:
        choice = choose_model(alone, case.catalogue)
        assumed = any(each.code == "plain_decoder_assumed" for each in choice.assumptions)
        return Read(read_parts(choice.spec, choice.checkpoint), assumed)
    except UnusableAnswerError as error:
        return Read(problems=(error.problem,))
    except Refusal as refusal:
        return Read(reason=refusal.reason)


def _sized(case: Case) -> ResultView | None:
    """Size a config that no link can hold; what would be links to other answers is left out.

    With views of its own: a config may be a megabyte, and a cache would keep hundreds of them.
    """
    if case.form.problems:
        return None
    links = Links(href=lambda _answers: "", permalink=None, quote="")
    view = ResultViews(case.catalogue).view(case.answers, links)
    return replace(view, ways_out=(), layouts=(), flags=())


def _text(case: Case, name: str) -> str:
    """Return what was pasted, as it was; from a link the object, one key a line."""
    entered = case.form.entered.get(name, "")
    value = getattr(case.answers, name)
    if entered.strip() or value is None:
        return entered
    return json.dumps(json.loads(value), indent=2, ensure_ascii=False)


def _carried(case: Case, without: Iterable[str]) -> list[tuple[str, str]]:
    """Return the other answers, to travel along with the form."""
    left_out = {"model", "checkpoint", "spec", *PASTED, *without}
    rest = replace(case.answers, hf_config=None, hf_quant_config=None, assume_plain_decoder=False)
    pairs = [pair for pair in query_pairs(rest) or () if pair[0] not in left_out]
    return [*pairs, *case.frame()]


page(router, "config", de="/config", en="/config")(ask)
page(router, "config_read", de="/config", en="/config", methods=("POST",))(read)
