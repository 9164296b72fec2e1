"""The workbench, the result of the guided flow, and the check before a quote."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from app.web.case import Case, read_case
from app.web.errors import KEEP_ADDRESS
from app.web.forms import PAGE_KEYS
from app.web.kept_pages import TYPED, keeping
from app.web.locale import page
from app.web.render import Renderer, wants_block
from app.web.view_models.answered import answered_before
from app.web.view_models.result_view import ResultViews
from app.wizard.flow import redirect_from
from app.wizard.readers import canonical_json
from app.wizard.sizing_request import Prepared
from app.wizard.steps import BY_CODE

router = APIRouter()

# What the workbench shows before anything was entered: an example, and said to be one.
EXAMPLE: Final = (
    ("model", "llama-3.3-70b"),
    ("checkpoint", "nvidia/Llama-3.3-70B-Instruct-FP8"),
    ("gpu", "rtx-pro-6000-server"),
    ("server", "2x-rtx-pro-6000-server"),
    ("max_model_len", "8192"),
)
# The fields of the workbench; all other answers travel along unseen.
PLAIN_FIELDS: Final = frozenset(
    {
        "model", "checkpoint", "kv_cache_dtype", "gpu", "server", "tensor_parallel_size",
        "replicas", "max_model_len", "peak_requests", "mean_request_tokens",
    }
)  # fmt: skip
EXPERT_FIELDS: Final = frozenset(
    {
        "vllm_version", "gpu_memory_utilization", "max_num_batched_tokens", "max_num_seqs",
        "block_size", "pipeline_parallel_size", "data_parallel_size",
        "decode_context_parallel_size", "enforce_eager",
        "enable_expert_parallel", "kv_cache_memory_bytes", "num_gpu_blocks_override",
        "cpu_offload_gb", "p95_request_tokens", "available_kv_cache_memory_bytes",
        "gpu_total_memory_bytes", "other_processes_gib",
    }
)  # fmt: skip
# Numbers of draft tokens that are offered where a checkpoint brings its own draft.
DRAFTS: Final = {
    canonical_json({"method": "mtp", "num_speculative_tokens": count}): count for count in (1, 2, 3)
}
UNPROCESSABLE: Final = 422


async def workbench(request: Request) -> Response:
    """Show every input beside the result; with something wrong, what and where (422)."""
    is_example = not any(
        text.strip() and name not in PAGE_KEYS for name, text in request.query_params.multi_items()
    )
    case = read_case(request, EXAMPLE if is_example else ())
    prepared = case.form.prepared
    release = prepared.request.release if prepared.request else None
    views: ResultViews = request.app.state.result_views
    fields = EXPERT_FIELDS | _optional_parts(prepared)
    context: dict[str, Any] = case.context(
        r=case.view(),
        optional_parts=_optional_parts(prepared),
        drafts=DRAFTS,
        choices=views.choices.bench(case.answers, release),
        carried_pairs=[*case.form.pairs(without=PLAIN_FIELDS | fields), *case.frame()],
        expert_open=any(name in fields for name, _ in case.form.pairs()),
        is_example=is_example,
        is_block=wants_block(request),
        section="workbench",
    )
    renderer: Renderer = request.app.state.renderer
    wrong = bool(case.form.problems)
    return renderer.page(
        request,
        "workbench/workbench.html",
        block="bench",
        status=UNPROCESSABLE if wrong else 200,
        headers=KEEP_ADDRESS if wrong else _address(request, case),
        **context,
    )


def _optional_parts(prepared: Prepared) -> frozenset[str]:
    """Return the fields that decide whether towers and drafts of this model are loaded."""
    request = prepared.request
    if request is None:
        return frozenset()
    fields = set()
    if request.model.multimodal:
        fields.add("language_model_only")
    if request.model.mtp_layers and "mtp" in request.checkpoint.includes:
        fields.add("speculative_config")
    return frozenset(fields)


def _address(request: Request, case: Case) -> dict[str, str]:
    """Say under which address htmx shows a block: a choice is an entry of its own, typing none."""
    if not wants_block(request):
        return {}
    name = "HX-Replace-Url" if TYPED in request.headers else "HX-Push-Url"
    return {name: case.path("workbench", case.form.pairs())}


async def guided_result(request: Request) -> Response:
    """Show the result of the guided flow, once every question is answered."""
    return _after_questions(request, "result", "wizard/result.html")


async def check(request: Request) -> Response:
    """Show every answer with a link to change it, before a quote is requested."""
    return _after_questions(request, "check", "wizard/check.html")


def _after_questions(request: Request, step: str, template: str) -> Response:
    case = read_case(request)
    missing = redirect_from(BY_CODE[step], case.answers, case.form.problems)
    if missing is not None:
        return RedirectResponse(case.path(missing.code, case.form.pairs()), 303)
    view = case.view()
    if view is None:
        # an input that only the workbench has is wrong: show it there
        return RedirectResponse(case.path("workbench", case.form.pairs()), 303)
    answered = answered_before(
        None, case.answers, case.catalogue,
        lambda code: case.path(code, [*case.form.pairs(), ("from", "check")]),
    )  # fmt: skip
    renderer: Renderer = request.app.state.renderer
    context = case.context(r=view, answered=answered, section="model")
    return renderer.page(request, template, **context)


page(router, "workbench", de="/rechner", en="/workbench")(keeping(workbench))
page(router, "result", de="/auslegung/ergebnis", en="/sizing/result")(keeping(guided_result))
page(router, "check", de="/auslegung/pruefen", en="/sizing/check")(check)
