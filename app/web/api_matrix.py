"""The matrix of the JSON API: which cards and layouts are asked for, and its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.reasons import Reason
from app.core.result import SizingResult
from app.web import api_schema as shape
from app.web.api_input import read_query, strict_problems, with_problems
from app.web.api_parameters import MATRIX_LISTS, TAKEN_BY_THE_MATRIX
from app.wizard.answers import ParsedAnswers, Problem, nearest_name, parse_answers
from app.wizard.card_choice import layout_of
from app.wizard.inputs import LAYOUT_INPUTS
from app.wizard.matrix import MatrixRow, all_cards
from app.wizard.permalink import text_of

MAX_LIST: Final = 64


@dataclass(frozen=True, slots=True)
class MatrixQuery:
    """The answers without card and layout, the cards, and the layouts (empty: the usual ones)."""

    parsed: ParsedAnswers
    gpus: tuple[GpuSpec, ...]
    layouts: tuple[Layout, ...]


def read_matrix_query(pairs: Iterable[tuple[str, str]], catalogue: Catalogue) -> MatrixQuery:
    """Read a query; problems of the lists stand with those of the answers."""
    lists = dict.fromkeys(MATRIX_LISTS, "")
    others: list[tuple[str, str]] = []
    for name, text in pairs:
        if name in lists:
            lists[name] = text
        else:
            others.append((name, text))
    problems: list[Problem] = [
        Problem("unknown_name", name, text, (("nearest", TAKEN_BY_THE_MATRIX[name]),))
        for name, text in others
        if name in TAKEN_BY_THE_MATRIX
    ]
    gpus = tuple(_gpus(lists["gpus"], catalogue, problems))
    layouts = tuple(_layouts(lists["layouts"], problems))
    parsed = read_query(pair for pair in others if pair[0] not in TAKEN_BY_THE_MATRIX)
    return MatrixQuery(with_problems(parsed, problems), gpus or all_cards(catalogue), layouts)


def sized_rows(rows: Iterable[MatrixRow]) -> list[shape.MatrixCell]:
    """Describe what came of each cell."""
    return [_cell(each.gpu, each.layout, each.result.reason, each.result) for each in rows]


def unsized_rows(query: MatrixQuery, reason: Reason | None) -> list[shape.MatrixCell]:
    """Give every cell the reason for which nobody can size this model."""
    layouts = query.layouts or (Layout(),)
    return [_cell(gpu, layout, reason, None) for gpu in query.gpus for layout in layouts]


def _cell(
    gpu: GpuSpec, layout: Layout, reason: Reason | None, result: SizingResult | None
) -> shape.MatrixCell:
    cache = None if result is None else result.cache
    planning = None if result is None else result.planning
    return shape.MatrixCell(
        gpu=gpu.slug,
        layout=shape.LayoutFacts(**asdict(layout), cards=layout.cards),
        ok=reason is None,
        kv_cache_size_tokens=None if cache is None else cache.kv_cache_size_tokens,
        max_concurrency=None if cache is None else cache.max_concurrency,
        planning_requests=None if planning is None else planning.requests,
        verdict_requests=0 if result is None else result.verdict_requests,
        reason=None if reason is None else short_reason(reason),
    )


def short_reason(reason: Reason) -> shape.ShortReason:
    """Describe a refusal by its code and numbers alone."""
    return shape.ShortReason(code=reason.code, numbers=dict(reason.numbers))


def _gpus(text: str, catalogue: Catalogue, problems: list[Problem]) -> Iterator[GpuSpec]:
    slugs = _list(text, "gpus", problems) if text.strip().startswith("[") else text.split(",")
    for slug in slugs:
        name = str(slug).strip().lower()
        if not name:
            continue
        card = catalogue.card(name)
        if card is not None:
            yield card.spec
        else:
            nearest = nearest_name(name, list(catalogue.gpus))
            problems.append(Problem("unknown_gpu", "gpus", name[:256], (("nearest", nearest),)))


def _layouts(text: str, problems: list[Problem]) -> Iterator[Layout]:
    for given in _list(text, "layouts", problems) if text.strip() else ():
        if not isinstance(given, Mapping):
            problems.append(Problem("not_an_object", "layouts", str(given)[:256]))
            continue
        parsed = parse_answers((str(name), text_of(value)) for name, value in given.items())
        wrong = [*parsed.problems, *strict_problems(parsed.notices)]
        foreign = (name for name in parsed.raw if name not in LAYOUT_INPUTS)
        wrong += [Problem("unknown_name", name, "") for name in foreign]
        problems.extend(Problem(each.code, "layouts", each.text, each.numbers) for each in wrong)
        yield layout_of(parsed.answers)


def _list(text: str, name: str, problems: list[Problem]) -> Sequence[object]:
    try:
        values = json.loads(text)
        json.dumps(values, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or len(values) > MAX_LIST:
        problems.append(Problem("not_a_list", name, text[:256], (("maximum", MAX_LIST),)))
        return ()
    return values
