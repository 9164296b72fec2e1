"""The whole result as data: every section in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.explanation import explain
from app.core.layout import Layout
from app.core.load import Load
from app.core.reasons import Reason
from app.core.result import Assumption, Planning, SizingResult
from app.core.sizing import size
from app.core.steps import Step
from app.core.what_if import FlagRow, what_if
from app.web.view_models.choices import Choices
from app.web.view_models.expected import Comparison, Expected, comparison_of, expected_of
from app.web.view_models.flag_table import FlagGroup, flag_groups
from app.web.view_models.layout_loss import LayoutLoss, layout_losses
from app.web.view_models.layout_table import (
    IdleCards,
    LayoutLine,
    idle_cards,
    layout_lines,
    side_by_side,
)
from app.web.view_models.memory_bar import MemoryBar, memory_bar_of
from app.web.view_models.provenance import Provenance, provenance_of
from app.web.view_models.token_bytes import TokenBytes, token_bytes_of
from app.web.view_models.users import Users, users_of
from app.web.view_models.verdict import Verdict, refused, verdict_of
from app.wizard.alternatives import alternatives_for
from app.wizard.answers import Answers
from app.wizard.commands import container_commands, serve_command
from app.wizard.layouts import LayoutRow, layouts_for
from app.wizard.sizing_request import Prepared, to_request
from app.wizard.ways_out import Way, ways_out_of

CACHED_RESULTS: Final = 256
MAX_WAYS_OUT: Final = 6
# Stands in the command where no repository is known: a pasted config, a supposed checkpoint.
PLACEHOLDER: Final = "MODEL"


@dataclass(frozen=True, slots=True)
class Links:
    """How a result links: to itself with other answers, to the permalink, to the quote page."""

    href: Callable[[Answers], str]
    permalink: str | None
    quote: str


@dataclass(frozen=True, slots=True)
class WayOut:
    """A way out that fits: what changes, how many requests it gives, and its link.

    A change to None takes an answer back.
    """

    changes: tuple[tuple[str, object], ...]
    requests: int
    href: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What was sized, by name; "" where something has none.

    `cache_dtype` is what the cache really is stored in: never "auto".
    """

    model: str
    precision: str
    card: str
    cache_dtype: str


@dataclass(frozen=True, slots=True)
class ResultView:
    """What the template shows. A section that has nothing to show is None or empty.

    `checkpoint_id` is "" where no repository is known; the command then holds `placeholder`.
    """

    facts: Facts
    vllm_version: str
    layout: Layout
    verdict: Verdict
    planned: Planning | None
    expected: Expected | None
    log_lines: tuple[str, ...]
    reason: Reason | None
    ways_out: tuple[WayOut, ...]
    comparison: Comparison | None
    memory_bar: MemoryBar | None
    layouts: tuple[LayoutLine, ...]
    layout_losses: tuple[LayoutLoss, ...]
    side_by_side: tuple[tuple[str, str], ...]
    token_bytes: TokenBytes | None
    flags: tuple[FlagGroup, ...]
    precisions: Mapping[str, str]
    users: Users | None
    steps: tuple[Step, ...]
    assumptions: tuple[Assumption, ...]
    checkpoint_id: str
    command: str | None
    containers: Mapping[str, str]
    permalink: str | None
    quote_href: str
    vendor_name: str
    extrapolated: tuple[str, str] | None = None
    provenance: Provenance | None = None
    idle: IdleCards | None = None
    placeholder: str = PLACEHOLDER


@dataclass(frozen=True, slots=True)
class Sized:
    """One case worked out: what the core says of it and of what stands beside it."""

    prepared: Prepared
    result: SizingResult | None
    layouts: tuple[LayoutRow, ...] = ()
    flags: tuple[FlagRow, ...] = ()
    ways_out: tuple[Way, ...] = ()


class ResultViews:
    """Makes result views for one catalogue. Cases that were worked out lately are kept."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Start with nothing worked out; `choices` keeps what the forms offer beside a result."""
        self._catalogue = catalogue
        self.choices = Choices(catalogue)
        self.sized = lru_cache(maxsize=CACHED_RESULTS)(self._size)

    def _size(self, answers: Answers) -> Sized:
        prepared = to_request(answers, self._catalogue)
        if prepared.request is None:
            return Sized(prepared, None)
        result = size(prepared.request)
        others = alternatives_for(prepared, self._catalogue)
        return Sized(
            prepared,
            result,
            layouts_for(prepared),
            what_if(result, others.checkpoints),
            () if result.verdict_requests else ways_out_of(prepared, result, self._catalogue),
        )

    def view(self, answers: Answers, links: Links) -> ResultView:
        """Show a case; its answers must be readable (no problems)."""
        sized = self.sized(answers)
        if sized.result is None:
            return self._unknown(sized.prepared, links)
        return self._view(sized, sized.result, links)

    def _view(self, sized: Sized, result: SizingResult, links: Links) -> ResultView:
        answers, server = sized.prepared.answers, sized.prepared.server
        layouts = layout_lines(sized.layouts, answers.peak_requests, links.href)
        checkpoint_id = result.request.checkpoint.hf_id
        return ResultView(
            facts=_facts(sized.prepared, result),
            vllm_version=result.request.release.version,
            layout=result.request.layout,
            verdict=verdict_of(result, answers.peak_requests),
            planned=result.planning,
            expected=expected_of(result),
            log_lines=result.log_lines,
            reason=result.reason,
            ways_out=tuple(_way_out(way, links) for way in sized.ways_out[:MAX_WAYS_OUT]),
            comparison=comparison_of(result),
            memory_bar=memory_bar_of(result),
            layouts=layouts,
            layout_losses=layout_losses(sized.layouts, layouts),
            side_by_side=side_by_side(layouts),
            idle=idle_cards(layouts, server.cards) if server else None,
            token_bytes=token_bytes_of(result),
            flags=flag_groups(sized.flags, answers, links.href),
            precisions=_precisions(sized.prepared),
            users=users_of(result, _load(answers)),
            steps=explain(result),
            assumptions=(*sized.prepared.assumptions, *result.assumptions),
            checkpoint_id=checkpoint_id,
            command=serve_command(checkpoint_id or PLACEHOLDER, answers),
            containers=container_commands(
                checkpoint_id or PLACEHOLDER,
                answers,
                result.request.release.version,
                result.request.gpu,
            ),
            permalink=links.permalink,
            quote_href=links.quote,
            vendor_name=self._catalogue.vendor.name,
            extrapolated=_extrapolated(result),
            provenance=provenance_of(sized.prepared),
        )

    def _unknown(self, prepared: Prepared, links: Links) -> ResultView:
        """Show a model that nobody here can size: an answer, with its reason."""
        return ResultView(
            facts=_facts(prepared),
            vllm_version=prepared.answers.vllm_version,
            layout=Layout(),
            verdict=refused(prepared.answers.peak_requests),
            planned=None,
            expected=None,
            log_lines=(),
            reason=prepared.reason,
            ways_out=(),
            comparison=None,
            memory_bar=None,
            layouts=(),
            layout_losses=(),
            side_by_side=(),
            token_bytes=None,
            flags=(),
            precisions={},
            users=None,
            steps=(),
            assumptions=prepared.assumptions,
            checkpoint_id="",
            command=None,
            containers={},
            permalink=links.permalink,
            quote_href=links.quote,
            vendor_name=self._catalogue.vendor.name,
        )


def _way_out(way: Way, links: Links) -> WayOut:
    return WayOut(tuple(way.changes.items()), way.result.verdict_requests, links.href(way.answers))


def _facts(prepared: Prepared, result: SizingResult | None = None) -> Facts:
    request = prepared.request
    resolved = result.resolved if result else None
    return Facts(
        model=_model_name(prepared),
        precision=request.checkpoint.precision if request else "",
        card=request.gpu.name if request else "",
        cache_dtype=resolved.stored_cache_dtype if resolved else "",
    )


def _extrapolated(result: SizingResult) -> tuple[str, str] | None:
    """Return the releases an estimate is extrapolated from, first and last; None where observed."""
    for each in result.assumptions:
        values = dict(each.values)
        if each.code == "release_extrapolated" and "observed_from" in values:
            return str(values["observed_from"]), str(values["observed_to"])
    return None


def _model_name(prepared: Prepared) -> str:
    """Return the catalogue's name; for a pasted config that of its architecture."""
    if prepared.model is not None:
        return prepared.model.name
    return prepared.request.model.architecture if prepared.request else ""


def _precisions(prepared: Prepared) -> dict[str, str]:
    """Return the precision of each checkpoint of the model by its id."""
    checkpoints = prepared.model.checkpoints if prepared.model else ()
    return {each.hf_id: each.precision for each in checkpoints}


def _load(answers: Answers) -> Load:
    return Load(answers.peak_requests, answers.mean_request_tokens, answers.p95_request_tokens)
