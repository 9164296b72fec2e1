"""What templates show, made from what the core answers."""

from __future__ import annotations

import shlex

import pytest
from fastapi import FastAPI

from app.catalog.catalogue import Catalogue
from app.core.load import Load
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.web.view_models.expected import comparison_of, expected_of
from app.web.view_models.flag_table import flag_groups
from app.web.view_models.layout_loss import CardShare, layout_losses
from app.web.view_models.layout_table import idle_cards, layout_lines
from app.web.view_models.memory_bar import memory_bar_of
from app.web.view_models.result_view import Links, ResultViews
from app.web.view_models.token_bytes import token_bytes_of
from app.web.view_models.users import users_of
from app.web.view_models.verdict import request_bytes, verdict_of
from app.wizard.answers import Answers
from app.wizard.commands import serve_command
from app.wizard.layouts import layouts_for
from app.wizard.sizing_request import to_request

LLAMA = Answers(
    model="llama-3.3-70b",
    checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8",
    gpu="rtx-pro-6000-server",
    max_model_len=8192,
)
REQUEST_BYTES = 8192 * 160 * 1024


def sized(catalogue: Catalogue, **changes: object) -> SizingResult:
    """Size the worked case with changes."""
    request = to_request(LLAMA.with_changes(**changes), catalogue).request
    assert request is not None
    return size(request)


def test_margin_is_what_is_left_beside_the_needed_requests(catalogue: Catalogue) -> None:
    """The margin is the cautious figure less what is needed, times the bytes of a request."""
    result = sized(catalogue)
    one, ten = verdict_of(result), verdict_of(result, 10)
    assert request_bytes(result) == REQUEST_BYTES
    assert one.margin_bytes is not None
    assert ten.margin_bytes is not None
    assert one.margin_bytes - ten.margin_bytes == pytest.approx(9 * REQUEST_BYTES, abs=2)
    assert one.concurrency is not None
    assert one.margin_bytes == pytest.approx((one.concurrency - 1) * REQUEST_BYTES, abs=2)


@pytest.mark.parametrize(
    ("changes", "peak", "state"),
    [
        ({}, None, "fits"),
        ({}, 12, "fits"),
        ({}, 13, "tight"),
        ({"max_model_len": 65_536}, None, "tight"),
        ({"max_model_len": 131_072}, None, "no"),
        ({"tensor_parallel_size": 3}, None, "no"),
    ],
)
def test_state_follows_the_need(
    catalogue: Catalogue, changes: dict[str, int], peak: int | None, state: str
) -> None:
    """It fits with room for the peak, is tight below it or with one request, else does not fit."""
    assert verdict_of(sized(catalogue, **changes), peak).state == state


def test_shortage_is_the_larger_of_both_ways(catalogue: Catalogue) -> None:
    """At 131,072 tokens the planning rule is short by more than the log, and that is shown."""
    verdict = verdict_of(sized(catalogue, max_model_len=131_072))
    assert verdict.margin_bytes is not None
    assert verdict.margin_bytes / GIB == pytest.approx(-(1 - 0.7683) * 20, abs=0.02)


def test_shortage_is_what_other_processes_hold_of_the_budget(catalogue: Catalogue) -> None:
    """A budget of 92 % beside 40 GiB of others is short by what is not free, not by nothing."""
    result = sized(catalogue, model="llama-3.1-8b", checkpoint=None, other_processes_gib=40.0)
    assert result.reason is not None
    numbers = dict(result.reason.numbers)
    margin = verdict_of(result).margin_bytes
    assert margin is not None
    missing = float(numbers["requested_gib"]) - float(numbers["free_gib"])
    assert margin == pytest.approx(-missing * GIB, abs=1)
    assert missing > 30


def test_shortage_counts_weights_beyond_the_planning_memory(catalogue: Catalogue) -> None:
    """BF16 on one card is short by all that the rule lacks for weights and one request."""
    verdict = verdict_of(sized(catalogue, checkpoint="meta-llama/Llama-3.3-70B-Instruct"))
    weights = sized(catalogue, checkpoint="meta-llama/Llama-3.3-70B-Instruct").checkpoint_bytes
    assert weights is not None
    left = int(97_887 * 2**20 * 0.9 - 3 * GIB) - weights
    assert verdict.margin_bytes == left - 2 * REQUEST_BYTES


def test_refusal_before_memory_has_no_margin(catalogue: Catalogue) -> None:
    """Where vLLM refuses for another reason than memory, no bytes are short."""
    assert verdict_of(sized(catalogue, tensor_parallel_size=3)).margin_bytes is None


def test_bar_is_filled_without_gap_or_overlap(catalogue: Catalogue) -> None:
    """The segments follow each other from 0 to 100 percent and sum to the card's memory."""
    bar = memory_bar_of(sized(catalogue))
    assert bar is not None
    edge = 0.0
    for segment in bar.segments:
        assert segment.start == pytest.approx(edge, abs=0.01)
        assert 0 <= segment.drawn_width <= segment.width
        edge = segment.start + segment.width
    assert edge == pytest.approx(100, abs=0.01)
    assert bar.total_bytes == sum(segment.likely for segment in bar.segments)


def test_expected_figure_counts_every_instance(catalogue: Catalogue) -> None:
    """Two copies print the same line each; the figure on top is that of both."""
    one, two = expected_of(sized(catalogue)), expected_of(sized(catalogue, replicas=2))
    assert one is not None
    assert two is not None
    assert two.low == pytest.approx(2 * one.low)
    assert two.engine_low == pytest.approx(one.low)
    assert two.tokens_low == one.tokens_low
    assert one.low <= one.likely <= one.high


def test_given_memory_has_no_range_and_no_comparison(catalogue: Catalogue) -> None:
    """With a measured memory the arithmetic is exact, and there is nothing to compare."""
    result = sized(catalogue, available_kv_cache_memory_bytes=20 * GIB)
    expected = expected_of(result)
    assert expected is not None
    assert expected.is_exact
    assert expected.low == expected.high == expected.likely
    assert comparison_of(result) is None


def test_comparison_adds_up(catalogue: Catalogue) -> None:
    """Per card, memory times share less what is set aside and weights is what is left."""
    comparison = comparison_of(sized(catalogue, tensor_parallel_size=2))
    assert comparison is not None
    for budget in (comparison.planning, comparison.log):
        left = budget.card_bytes * budget.utilization - budget.reserve_bytes - budget.weights_bytes
        assert left == pytest.approx(budget.cache_bytes, rel=0.002)


def test_token_formula_gives_the_bytes(catalogue: Catalogue) -> None:
    """2 x 80 x 8 x 128 x 1 byte is 160 KiB; at 16 bit it is twice that."""
    fp8, wide = sized(catalogue), sized(catalogue, kv_cache_dtype="bfloat16")
    for result, kib in ((fp8, 160), (wide, 320)):
        cost = token_bytes_of(result)
        assert cost is not None
        assert cost.formula is not None
        assert cost.per_token == kib * 1024
        assert cost.request_bytes == 8192 * kib * 1024


def test_copied_heads_are_named(catalogue: Catalogue) -> None:
    """With more cards than KV heads the same heads lie on several cards."""
    cost = token_bytes_of(sized(catalogue, tensor_parallel_size=16))
    assert cost is not None
    assert cost.copied_heads == 8


def test_hybrids_show_which_layers_pay(catalogue: Catalogue) -> None:
    """A model with windows has no one formula; its groups share the request without a gap."""
    request = to_request(
        Answers(model="gpt-oss-120b", gpu="h200-nvl", max_model_len=131_072), catalogue
    ).request
    assert request is not None
    cost = token_bytes_of(size(request))
    assert cost is not None
    assert cost.formula is None
    assert {group.kind for group in cost.groups} == {"full_attention", "sliding_window"}
    full = next(group for group in cost.groups if group.kind == "full_attention")
    assert full.bytes == pytest.approx(4.5 * GIB, rel=0.01)
    assert sum(group.width for group in cost.groups) == pytest.approx(100, abs=0.01)


def test_layouts_share_the_scale_of_the_best(catalogue: Catalogue) -> None:
    """The best layout fills its meter, the others in proportion."""
    prepared = to_request(LLAMA.with_changes(server="2x-rtx-pro-6000-server"), catalogue)
    lines = layout_lines(layouts_for(prepared), None, lambda _: "?")
    assert [line.requests for line in lines] == [12, 24, 78]
    assert [line.share for line in lines] == pytest.approx([1200 / 78, 2400 / 78, 100], abs=0.01)


def test_idle_cards_of_a_server_are_named(catalogue: Catalogue) -> None:
    """One card of a pair leaves one idle and names the best use of both; a full pair none."""
    one = LLAMA.with_changes(server="2x-rtx-pro-6000-server")
    for answers, expected in ((one, (1, 2, 78)), (one.with_changes(replicas=2), None)):
        lines = layout_lines(layouts_for(to_request(answers, catalogue)), None, lambda _: "?")
        idle = idle_cards(lines, 2)
        assert (idle and (idle.used, idle.cards, idle.best.requests)) == expected


def test_idle_cards_are_not_named_where_all_hold_nothing(catalogue: Catalogue) -> None:
    """Cards that would not help are not offered: BF16 fits on neither one nor two of them."""
    answers = LLAMA.with_changes(
        checkpoint="meta-llama/Llama-3.3-70B-Instruct",
        gpu="rtx-pro-6000-server",
        server="2x-rtx-pro-6000-server",
        max_model_len=131_072,
    )
    lines = layout_lines(layouts_for(to_request(answers, catalogue)), None, lambda _: "?")
    assert idle_cards(lines, 2) is None


def test_users_at_the_mean_length(catalogue: Catalogue) -> None:
    """Half the length holds about twice the requests, never less than the declared length does."""
    users = users_of(sized(catalogue), Load(peak_requests=20, mean_request_tokens=4096))
    assert users is not None
    assert users.requests == 12
    assert users.at_mean == 24
    assert "peak_exceeds_worst_case" in users.checks


def test_flag_links_carry_the_value(catalogue: Catalogue, app: FastAPI) -> None:
    """Each other value of a flag is written into the answers of its link."""
    views: ResultViews = app.state.result_views
    rows = views.sized(LLAMA).flags
    seen: list[Answers] = []

    def href(answers: Answers) -> str:
        seen.append(answers)
        return "?"

    groups = flag_groups(rows, LLAMA, href)
    assert [group.kind for group in groups] == ["memory", "divisor", "neither"]
    assert any(answers.enforce_eager for answers in seen)
    assert any(answers.max_model_len == 4096 for answers in seen)
    assert all(answers != LLAMA for answers in seen)


def test_a_checkpoint_that_brings_another_cache_says_so(app: FastAPI) -> None:
    """AWQ declares no FP8 cache, so it gives fewer tokens than FP8, and its row says why."""
    views: ResultViews = app.state.result_views
    lines = {
        line.flag: line
        for group in flag_groups(views.sized(LLAMA).flags, LLAMA, lambda _: "?")
        for line in group.lines
    }
    dtypes = {other.value: other.other_cache_dtype for other in lines["checkpoint"].others}
    assert dtypes["casperhansen/llama-3.3-70b-instruct-awq"] == "bfloat16"
    assert dtypes["nvidia/Llama-3.3-70B-Instruct-NVFP4"] is None
    assert all(other.other_cache_dtype is None for other in lines["kv_cache_dtype"].others)


def test_results_are_worked_out_once(app: FastAPI) -> None:
    """The same answers are sized once; the links of each page are its own."""
    views = ResultViews(app.state.catalogue)
    first = views.view(LLAMA, Links(lambda _: "?a", "x", "y"))
    second = views.view(LLAMA, Links(lambda _: "?b", "x", "y"))
    assert views.sized.cache_info().hits == 1
    assert first.layouts[0].href == "?a"
    assert second.layouts[0].href == "?b"


def test_command_leaves_out_what_vllm_would_choose() -> None:
    """A case without flags is the bare command; a file name with a blank is quoted."""
    assert serve_command("a/b", Answers()) == "vllm serve a/b"
    assert shlex.split(serve_command("a b", Answers())) == ["vllm", "serve", "a b"]
    assert "--max-model-len auto" in serve_command("a/b", Answers(max_model_len=-1))
    assert "--no-async-scheduling" in serve_command("a/b", Answers(async_scheduling=False))


def test_why_two_copies_hold_24_and_a_pair_78(catalogue: Catalogue) -> None:
    """Copies hold the weights twice and leave 15.4 GiB of a card; the pair halves them: 49.2."""
    rows = layouts_for(to_request(LLAMA.with_changes(server="2x-rtx-pro-6000-server"), catalogue))
    lines = layout_lines(rows, None, lambda _: "?")
    (loss,) = layout_losses(rows, lines)
    assert (loss.code, loss.count, loss.others) == ("weights_repeated", 2, ())
    assert (loss.line.requests, loss.better.requests) == (24, 78)
    assert in_gib(loss.share) == pytest.approx((67.7, 15.4), abs=0.05)
    assert in_gib(loss.better_share) == pytest.approx((33.8, 49.2), abs=0.05)


def in_gib(share: CardShare | None) -> tuple[float, float]:
    """Return what a card gives weights and cache."""
    assert share is not None
    return share.weights_bytes / GIB, share.cache_bytes / GIB


def test_a_copied_latent_cache_is_told_from_every_layout_that_copies_none(
    catalogue: Catalogue,
) -> None:
    """TP 8 of DeepSeek-V3.2 loses against DCP 8, with the cache that it needs, and DP 8."""
    answers = Answers(model="deepseek-v3.2", gpu="h200", tensor_parallel_size=8, max_model_len=8192)
    rows = layouts_for(to_request(answers, catalogue))
    (loss,) = layout_losses(rows, layout_lines(rows, None, lambda _: "?"))
    assert (loss.code, loss.count) == ("latent_copied", 8)
    assert loss.better.layout.decode_context_parallel_size == 8
    assert loss.better.cache_dtype == "fp8"
    assert [other.layout.data_parallel_size for other in loss.others] == [8]
    assert [other.cache_dtype for other in loss.others] == [None]


def test_a_latent_cache_is_counted_on_every_card(catalogue: Catalogue) -> None:
    """Eight cards hold the same latent cache, so a token costs eight times what one card holds."""
    changes = {"model": "deepseek-v3.2", "checkpoint": None, "gpu": "h200"}
    group = token_bytes_of(sized(catalogue, **changes, tensor_parallel_size=8))
    spread = token_bytes_of(
        sized(catalogue, **changes, data_parallel_size=8, enable_expert_parallel=True)
    )
    assert group is not None
    assert spread is not None
    assert (group.is_even, group.latent_copies) == (True, 8)
    assert (spread.is_even, spread.latent_copies) == (True, 1)
    assert group.per_token == pytest.approx(8 * spread.per_token)


def test_the_planning_column_adds_up_where_experts_are_spread(catalogue: Catalogue) -> None:
    """What is left is the share of the card less reserve and weights, experts in part."""
    result = sized(
        catalogue, model="deepseek-v3.2", checkpoint=None, gpu="h200",
        data_parallel_size=8, enable_expert_parallel=True,
    )  # fmt: skip
    compared = comparison_of(result)
    assert compared is not None
    plan = compared.planning
    left = plan.card_bytes * plan.utilization - plan.reserve_bytes - plan.weights_bytes
    assert plan.cache_bytes == pytest.approx(left, abs=2)
