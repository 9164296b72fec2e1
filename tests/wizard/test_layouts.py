"""Layouts side by side: the usual ones, each with its own answers, the chosen one marked."""

import pytest

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.wizard.answers import Answers
from app.wizard.layouts import LayoutRow, layouts_for
from app.wizard.sizing_request import to_request

LLAMA = Answers(
    model="llama-3.3-70b",
    checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8",
    gpu="rtx-pro-6000-server",
    max_model_len=8192,
)


def splits(rows: tuple[LayoutRow, ...]) -> list[tuple[int, int]]:
    """Return cards per copy and copies of each row."""
    return [(row.layout.tensor_parallel_size, row.layout.replicas) for row in rows]


def test_a_server_is_filled_in_every_way(catalogue: Catalogue) -> None:
    """On eight cards: one card, then the whole server as copies of 1, 2, 4 and 8."""
    answers = LLAMA.with_changes(server="8x-rtx-pro-6000-server", replicas=8)
    rows = layouts_for(to_request(answers, catalogue))
    assert splits(rows) == [(1, 1), (1, 8), (2, 4), (4, 2), (8, 1)]
    assert [row.chosen for row in rows] == [False, True, False, False, False]


def test_two_copies_against_a_pair(catalogue: Catalogue) -> None:
    """Two RTX PRO 6000 hold 24 requests as two copies and 78 as a tensor-parallel pair."""
    rows = layouts_for(to_request(LLAMA.with_changes(server="2x-rtx-pro-6000-server"), catalogue))
    planned = {
        split: row.result.planning.requests
        for split, row in zip(splits(rows), rows, strict=True)
        if row.result.planning
    }
    assert planned == {(1, 1): 12, (1, 2): 24, (2, 1): 78}


def test_an_unusual_choice_is_still_in_the_table(catalogue: Catalogue) -> None:
    """A layout that is none of the usual ones stands last, marked."""
    rows = layouts_for(to_request(LLAMA.with_changes(replicas=3), catalogue))
    assert splits(rows)[-1] == (1, 3)
    assert [row.chosen for row in rows].count(True) == 1
    assert rows[-1].chosen


def test_each_row_is_what_its_link_shows(catalogue: Catalogue) -> None:
    """Sizing the answers of a row gives the figures of the row."""
    for row in layouts_for(to_request(LLAMA, catalogue)):
        prepared = to_request(row.answers, catalogue)
        assert prepared.request is not None
        assert size(prepared.request) == row.result


def test_without_a_request_there_is_nothing_to_compare(catalogue: Catalogue) -> None:
    """Asking for layouts of unanswered questions is a mistake of the caller."""
    with pytest.raises(ValueError, match="request"):
        layouts_for(to_request(Answers(), catalogue))


DEEPSEEK = Answers(model="deepseek-v3.2", gpu="h200", tensor_parallel_size=8, max_model_len=32_768)


def special(rows: tuple[LayoutRow, ...]) -> list[tuple[int, int, str, int]]:
    """Return DP, DCP, cache and requests of the rows that are neither copies nor groups."""
    return [
        (
            row.layout.data_parallel_size,
            row.layout.decode_context_parallel_size,
            row.answers.kv_cache_dtype,
            row.result.verdict_requests,
        )
        for row in rows
        if row.layout.data_parallel_size > 1 or row.layout.decode_context_parallel_size > 1
    ]


def test_experts_and_latent_caches_are_divided_in_their_own_ways(catalogue: Catalogue) -> None:
    """DeepSeek-V3.2 on 8 x H200: spread experts hold more than TP 8, DCP 8 far more, in FP8."""
    rows = layouts_for(to_request(DEEPSEEK, catalogue))
    group = next(row.result.verdict_requests for row in rows if row.chosen)
    (experts, one, as_asked, spread), (none, tokens, smaller, divided) = special(rows)
    assert (experts, one, as_asked) == (8, 1, "auto")
    assert (none, tokens, smaller) == (1, 8, "fp8")
    assert group < spread < divided / 4


def test_a_row_keeps_its_place_when_it_is_chosen(catalogue: Catalogue) -> None:
    """Following a row's link marks it and moves nothing."""
    rows = layouts_for(to_request(DEEPSEEK, catalogue))
    spread = next(row for row in rows if row.layout.data_parallel_size > 1)
    after = layouts_for(to_request(spread.answers, catalogue))
    assert [row.layout for row in after] == [row.layout for row in rows]
    assert [row.layout for row in after if row.chosen] == [spread.layout]


def test_a_cache_that_was_chosen_is_not_exchanged(catalogue: Catalogue) -> None:
    """Who asks for a 16-bit cache is offered no layout that runs only with another one."""
    rows = layouts_for(to_request(DEEPSEEK.with_changes(kv_cache_dtype="bfloat16"), catalogue))
    assert [line[:3] for line in special(rows)] == [(8, 1, "bfloat16")]


def test_a_row_in_another_cache_is_what_its_link_shows(catalogue: Catalogue) -> None:
    """The layout with an FP8 cache has the figures of its own answers."""
    row = layouts_for(to_request(DEEPSEEK, catalogue))[-1]
    prepared = to_request(row.answers, catalogue)
    assert prepared.request is not None
    assert size(prepared.request) == row.result
