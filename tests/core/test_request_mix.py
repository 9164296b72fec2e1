"""How many requests of a mix a sized server may be promised."""

from dataclasses import replace

import pytest

from app.core.request_mix import cautious_blocks, promised_requests, request_mix
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.workload import histogram_workload, lognormal_workload
from tests.core.memory_case import request


@pytest.fixture
def sized() -> SizingResult:
    """Return a small server that starts."""
    found = size(request())
    assert found.ok
    return found


def test_equal_requests_of_full_length_are_at_least_the_verdict(sized: SizingResult) -> None:
    """Requests are shorter than declared most of their life, so the worst case fits as well."""
    assert sized.resolved is not None
    length = sized.resolved.max_model_len
    mix = request_mix(sized, lognormal_workload(length, length, 0.5))
    assert mix is not None
    assert mix.rarely >= sized.verdict_requests
    assert mix.rarely <= mix.sometimes <= mix.often


def test_engines_add_up(sized: SizingResult) -> None:
    """Three copies hold three times as many, each with its share."""
    workload = lognormal_workload(100, 200, 0.3)
    layout = replace(sized.request.layout, replicas=3)
    three = size(replace(sized.request, layout=layout))
    one, all_three = request_mix(sized, workload), request_mix(three, workload)
    assert one is not None
    assert all_three is not None
    assert all_three.rarely == 3 * one.rarely
    assert all_three.curve[0][0] == 3


def test_the_promise_is_the_smaller_of_cache_and_batch(sized: SizingResult) -> None:
    """Tiny requests run into max_num_seqs before the cache is full, and the mix says so."""
    assert sized.resolved is not None
    workload = lognormal_workload(8, 8, 0.5)
    mix = request_mix(sized, workload)
    assert mix is not None
    expected = "batch" if sized.resolved.max_num_seqs <= mix.rarely else "cache"
    assert mix.first_limit == expected
    assert mix.requests == min(mix.rarely, mix.batch_limit)
    assert promised_requests(sized, workload) == mix.requests


def test_no_request_that_is_accepted_is_no_promise(sized: SizingResult) -> None:
    """Requests longer than the declared length are refused, so none is promised."""
    assert sized.resolved is not None
    longer = sized.resolved.max_model_len + 1
    workload = lognormal_workload(longer, longer, 0.2)
    assert request_mix(sized, workload) is None
    assert promised_requests(sized, workload) == 0


def test_without_lengths_the_verdict_counts(sized: SizingResult) -> None:
    """Nothing known about lengths means all may be of the declared one, as many as run at once."""
    assert sized.resolved is not None
    assert sized.resolved.max_num_seqs < sized.verdict_requests
    assert promised_requests(sized, None) == sized.resolved.max_num_seqs


def test_blocks_are_those_of_the_cautious_end(sized: SizingResult) -> None:
    """Neither the planning rule nor the low end of the log has fewer blocks."""
    assert sized.cache is not None
    assert sized.planning is not None
    blocks = cautious_blocks(sized)
    assert blocks <= sized.cache.num_gpu_blocks
    per_request = sized.cache.blocks_per_request
    assert blocks <= sized.planning.max_concurrency * per_request + 0.5


def test_half_accepted_is_said(sized: SizingResult) -> None:
    """A histogram half of which is too long is accepted by half."""
    assert sized.resolved is not None
    length = sized.resolved.max_model_len
    workload = histogram_workload([length, 3 * length], [1, 1], 0.2)
    mix = request_mix(sized, workload)
    assert mix is not None
    assert mix.accepted == pytest.approx(0.5)
    assert mix.sufficient_max_model_len >= 2.9 * length


def test_a_server_that_does_not_start_promises_nothing() -> None:
    """Without a cache there are no blocks to count, no mix and no promise."""
    refused = size(request(max_model_len=10**9))
    assert refused.cache is None
    assert cautious_blocks(refused) == 0
    assert request_mix(refused, lognormal_workload(100, 200, 0.3)) is None
    assert promised_requests(refused, lognormal_workload(100, 200, 0.3)) == 0


def test_without_a_rule_or_a_range_the_blocks_of_the_cache_count(sized: SizingResult) -> None:
    """A cache read from a log on a card nobody knows has neither; else the fewer of both count."""
    assert sized.cache is not None
    bare = replace(sized, planning=None, concurrency_range=None)
    assert cautious_blocks(bare) == sized.cache.num_gpu_blocks
    only_rule = replace(sized, concurrency_range=None)
    only_range = replace(sized, planning=None)
    assert cautious_blocks(sized) == min(cautious_blocks(only_rule), cautious_blocks(only_range))
