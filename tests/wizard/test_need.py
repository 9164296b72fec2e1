"""The smallest servers for a need, against trying everything."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.catalog.catalogue import Catalogue
from app.core.request import SizingRequest
from app.core.request_mix import promised_requests
from app.core.sizing import size
from app.core.workload import lognormal_workload
from app.wizard.answers import Answers
from app.wizard.need import (
    MAX_CARDS,
    Fleet,
    Need,
    checkpoints_of,
    engine_layouts,
    fleet_of,
    offers,
    usual_bits,
)
from app.wizard.sizing_request import to_request

MODELS = ("llama-3.3-70b", "gpt-oss-120b", "llama-3.1-8b", "gemma-3-27b", "deepseek-v3.2")
CARDS = ("rtx-pro-6000-server", "h200-nvl", "l40s", "h200")
LENGTHS = (4096, 8192, 32768)


def candidates(catalogue: Catalogue, model: str, length: int) -> list[SizingRequest]:
    """Return one copy of a model on every card in every layout."""
    found = []
    for card in CARDS:
        answers = Answers(model=model, gpu=card, max_model_len=length)
        request = to_request(answers, catalogue).request
        assert request is not None
        found += [replace(request, layout=layout) for layout in engine_layouts(request.model)]
    return found


def brute_force(
    requests: Sequence[SizingRequest], need: Need, sizes: Sequence[int]
) -> tuple[float, ...] | None:
    """Try every number of copies in every number of servers of every size; the best sort key."""
    best: tuple[float, ...] | None = None
    for request in requests:
        for copies in range(1, MAX_CARDS // request.layout.cards + 1):
            working = copies - need.spare_copies
            if working < 1:
                continue
            layout = replace(request.layout, replicas=working)
            held = promised_requests(size(replace(request, layout=layout)), need.workload)
            if held < need.requests:
                continue
            for each in sizes:
                for servers in range(1, MAX_CARDS // each + 1):
                    if servers * (each // request.layout.cards) < copies:
                        continue
                    watts = (request.gpu.tdp_watts or float("inf")) * servers * each
                    key = (float(servers * each), watts, -held / need.requests)
                    best = key if best is None else min(best, key)
            break
    return best


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_smallest_server_is_what_trying_everything_finds(catalogue: Catalogue) -> None:
    """Over 500 random needs the first offer has the cards, power and headroom of the best."""
    chance = random.Random(6)  # noqa: S311 - a draw of cases
    known = {
        (model, length): candidates(catalogue, model, length)
        for model in MODELS
        for length in LENGTHS
    }
    mixes = [lognormal_workload(mean, 2 * mean, 0.2) for mean in (300, 1200, 4000)]
    workloads = [*mixes, *[None] * 9]
    met = 0
    for _ in range(500):
        requests = chance.sample(known[chance.choice(MODELS), chance.choice(LENGTHS)], 6)
        workload = chance.choice(workloads)
        need = Need(round(2 ** chance.uniform(0, 11)), workload, chance.choice([0, 0, 1]))
        sizes = chance.choice([(1, 2, 4, 8), (2, 8), (4,), (8,)])
        found = offers(requests, need, sizes)
        expected = brute_force(requests, need, sizes)
        assert (found[0].order(need) if found else None) == pytest.approx(expected), need
        met += bool(found)
    assert 100 < met < 500


def test_a_seat_more_than_one_copy_holds_takes_a_second_copy(catalogue: Catalogue) -> None:
    """Twelve requests of full length fit one card, thirteen take two copies."""
    answers = Answers(
        model="llama-3.3-70b",
        checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8",
        gpu="rtx-pro-6000-server",
        max_model_len=8192,
    )
    request = to_request(answers, catalogue).request
    assert request is not None
    (twelve,) = offers([request], Need(12))
    (thirteen,) = offers([request], Need(13))
    assert (twelve.copies, twelve.requests, twelve.binding) == (1, 12, "cache")
    assert (thirteen.copies, thirteen.requests, thirteen.fleet) == (2, 24, Fleet(1, 2))


def test_a_spare_copy_adds_cards_and_no_requests(catalogue: Catalogue) -> None:
    """N+1 buys one copy more and still counts on N."""
    request = candidates(catalogue, "llama-3.1-8b", 8192)[0]
    (plain,) = offers([request], Need(5))
    (spare,) = offers([request], Need(5, spare_copies=1))
    assert (spare.copies, spare.requests) == (plain.copies + 1, plain.requests)


def test_what_limits_an_offer_is_named(catalogue: Catalogue) -> None:
    """A small model runs into max_num_seqs, DeepSeek's weights ask for all eight cards."""
    small = candidates(catalogue, "llama-3.1-8b", 4096)
    batch = offers(small, Need(1, lognormal_workload(20, 20, 0.5)))[0]
    large = candidates(catalogue, "deepseek-v3.2", 8192)
    weights = offers(large, Need(1))[0]
    assert batch.binding == "batch"
    assert (weights.binding, weights.fleet.cards) == ("weights", 8)


def test_copies_are_not_split_over_servers() -> None:
    """Three copies of two cards take one server of eight, or three of two: six cards are fewer."""
    assert fleet_of(3, 2, (1, 2, 4, 8)) == Fleet(3, 2)
    assert fleet_of(3, 2, (8,)) == Fleet(1, 8)
    assert fleet_of(1, 8, (1, 2, 4)) is None


def test_usual_weights_are_the_makers_and_eight_bit(catalogue: Catalogue) -> None:
    """Four bit is offered for models published so, and else only when it is allowed."""
    assert usual_bits("bf16") == (16, 8)
    assert usual_bits("mxfp4") == (4,)
    model = catalogue.models["gpt-oss-120b"]
    main = model.checkpoints[0].checkpoint
    assert checkpoints_of(model, main, usual_bits(main.precision)) == (main,)
    llama = catalogue.models["llama-3.3-70b"]
    found = checkpoints_of(llama, llama.select()[0].checkpoint, (16, 8, 4))
    assert [each.precision for each in found] == ["bf16", "fp8", "nvfp4"]
