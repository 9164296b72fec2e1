"""A page that takes a pasted config.json, says what it read, and sizes that model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.catalog.hub import HubError, look_up
from app.catalog.model_search import find_model
from app.core.reasons import Reason, Refusal
from app.settings import Settings
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
HUB: Final = "hub"
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
    """Show the form; with a config in the address, or one to be looked up, what it says."""
    wanted = request.query_params.get(HUB, "").strip()
    if not wanted:
        case = await run_in_threadpool(read_case, request)
        return await run_in_threadpool(_page, case, posted=False)
    known = find_model(request.app.state.catalogue.models, wanted)
    if known is not None:
        case = await run_in_threadpool(read_case, request)
        return RedirectResponse(case.path("workbench", [("model", wanted), *_others(case)]), 303)
    return await _look_up(request, wanted)


async def _look_up(request: Request, wanted: str) -> Response:
    """Show what the hub has under an id, or why there is nothing to show (422)."""
    settings: Settings = request.app.state.settings
    case = await run_in_threadpool(read_case, request)
    revision = request.query_params.get("revision", "").strip() or "main"
    if settings.hub_url is None:
        missing = Problem("hub_off", HUB, wanted)
        return await run_in_threadpool(_page, case, posted=False, failed=missing)
    try:
        found = await look_up(settings.hub_url, settings.data_dir / "hub", wanted, revision)
    except HubError as error:
        failed = Problem(error.code, HUB, wanted, tuple(error.facts.items()))
        return await run_in_threadpool(_page, case, posted=False, failed=failed)
    pairs = [*_others(case), ("model", found.hf_id), ("revision", found.revision)]
    pairs.append(("hf_config", json.dumps(found.config)))
    if found.hf_quant_config is not None:
        pairs.append(("hf_quant_config", json.dumps(found.hf_quant_config)))
    case = await run_in_threadpool(read_case, request, pairs)
    return await run_in_threadpool(_page, case, posted=False, index_bytes=found.weights_bytes)


async def read(request: Request) -> Response:
    """Read what was pasted and show it, or what is wrong with it (422)."""
    async with request.form(max_fields=MAX_FIELDS, max_files=0, max_part_size=MIB) as fields:
        pairs = [(name, text) for name, text in fields.multi_items() if isinstance(text, str)]
    # an empty form is a form too, not an address without answers
    case = await run_in_threadpool(read_case, request, pairs or [("hf_config", "")])
    return await run_in_threadpool(_page, case, posted=True)


def _page(
    case: Case, *, posted: bool, failed: Problem | None = None, index_bytes: int | None = None
) -> Response:
    answers = case.answers
    found = _read(case, posted=posted) if failed is None else Read(problems=(failed,))
    link = None
    if found.reading is not None and query_pairs(answers) is not None:
        link = case.path("workbench", [*case.form.pairs(), *_first_card(case)])
    renderer: Renderer = case.request.app.state.renderer
    context: dict[str, Any] = case.context(
        texts={name: _text(case, name) for name in PASTED[:2]},
        reading=found.reading,
        is_assumed=found.is_assumed,
        reason=found.reason,
        problems=found.problems,
        index_bytes=index_bytes,
        wanted=case.form.page.get(HUB, ""),
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


def _first_card(case: Case) -> list[tuple[str, str]]:
    """Return the vendor's first card where none is chosen, so that the link leads to figures."""
    answers = case.answers
    chosen = (answers.gpu, answers.server, answers.gpu_total_memory_bytes)
    if any(each is not None for each in chosen) or "gpu" in answers.unsure:
        return []
    return [("gpu", case.catalogue.vendor.cards[0])]


def _read(case: Case, *, posted: bool) -> Read:
    """Describe the config of a case. Problems of other fields wait until a card is chosen."""
    problems = case.form.problems_of((*PASTED[:2], "spec"))
    if problems:
        return Read(problems=problems)
    if case.answers.hf_config is None:
        return Read(problems=(Problem("missing", "hf_config", ""),) if posted else ())
    try:
        choice = choose_model(replace(case.answers, checkpoint=None), case.catalogue)
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
    """Return the other answers and the frame, to travel along with the form."""
    return [*_others(case, without), *case.frame()]


def _others(case: Case, without: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the answers that are not about the model."""
    left_out = {"model", "revision", "checkpoint", "spec", *PASTED, *without}
    rest = replace(case.answers, hf_config=None, hf_quant_config=None, assume_plain_decoder=False)
    return [pair for pair in query_pairs(rest) or () if pair[0] not in left_out]


page(router, "config", de="/config", en="/config")(ask)
page(router, "config_read", de="/config", en="/config", methods=("POST",))(read)
