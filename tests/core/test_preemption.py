"""When preemptions begin, against a scheduler that works block by block."""

import math
import random
from dataclasses import dataclass, replace

import pytest

from app.core.grouping import Grouping
from app.core.kv_cache import CacheShape
from app.core.kv_spec import KvSpec, RequestLength
from app.core.preemption import (
    HeldBlocks,
    blocks_of,
    held_blocks,
    preemption_probability,
    requests_at,
)
from app.core.workload import (
    LengthBin,
    Workload,
    answer_tokens,
    histogram_workload,
    lognormal_workload,
    moments,
)
from tests.core.scheduler import Draw, blocks_in_use

FULL = KvSpec("full_attention", 16, 1)
WINDOW = KvSpec("sliding_window", 16, 1, window=128)
WIDE_WINDOW = KvSpec("sliding_window", 32, 1, window=100)
CHUNK = KvSpec("chunked_local", 16, 1, window=96)
STATE = KvSpec("mamba", 528, 1, tokens_per_state=0, state_blocks=2)
COARSE = KvSpec("full_attention", 528, 1)
LATENT = KvSpec("mla", 64, 1)
BATCHES = 20


def shape(*kinds: tuple[KvSpec, int], max_model_len: int = 8192) -> CacheShape:
    """Return a cache of groups; only what a request holds matters here."""
    grouping = Grouping(
        groups=(),
        bytes_per_block_by_stage=(1,),
        checked_bytes_by_stage=(1,),
        kinds=kinds,
        layer_bytes=(),
        backends=(),
    )
    length = RequestLength(max_model_len, 16384)
    return CacheShape(16, (1,), grouping.blocks_per_request(length), (), grouping, length)


@dataclass(frozen=True)
class Mix:
    """One mix: the groups, the lengths, the requests in flight."""

    name: str
    kinds: tuple[tuple[KvSpec, int], ...]
    workload: Workload
    requests: int
    max_model_len: int = 8192


def _mixes() -> list[Mix]:
    """Twenty mixes: five kinds of model, four kinds of load."""
    models = {
        "dense": ((FULL, 1),),
        "gpt-oss": ((WINDOW, 1), (FULL, 1)),
        "gemma": ((WIDE_WINDOW, 5), (FULL, 1)),
        "llama-4": ((CHUNK, 3), (FULL, 1)),
        "hybrid": ((STATE, 3), (COARSE, 1)),
    }
    loads = {
        "chat": (lognormal_workload(300, 800, 0.25), 12),
        "spread": (lognormal_workload(200, 700, 0.3), 6),
        "prefix": (lognormal_workload(400, 900, 0.2, 160), 25),
        "histogram": (histogram_workload([100, 200, 500, 1000], [30, 40, 20, 10], 0.2), 9),
    }
    return [
        Mix(f"{model}-{load}", kinds, workload, requests)
        for model, kinds in models.items()
        for load, (workload, requests) in loads.items()
    ]


def drawing(workload: Workload, max_model_len: int) -> Draw:
    """Draw prompt and answer of one request; one that is too long never starts."""
    shares = [each.share for each in workload.lengths]

    def draw(chance: random.Random) -> tuple[int, int]:
        while True:
            (found,) = chance.choices(workload.lengths, shares)
            length = chance.randint(found.shortest, found.longest)
            if length <= max_model_len:
                answer = answer_tokens(length, workload.answer_share)
                return length - answer, answer

    return draw


def observed(mix: Mix, blocks: int, steps: int) -> tuple[float, float]:
    """Return the share of steps in which the pool is too small, and its standard error."""
    groups = [spec for spec, count in mix.kinds for _ in range(count)]
    draw = drawing(mix.workload, mix.max_model_len)
    shared = mix.workload.shared_prefix_tokens
    used = list(blocks_in_use(groups, mix.requests, steps, draw, shared=shared, seed=7))
    size = steps // BATCHES
    means = [
        sum(each > blocks - 1 for each in used[i * size : (i + 1) * size]) / size
        for i in range(BATCHES)
    ]
    mean = sum(means) / BATCHES
    spread = sum((each - mean) ** 2 for each in means) / (BATCHES - 1)
    return mean, math.sqrt(spread / BATCHES)


def blocks_at(held: HeldBlocks, requests: int, probability: float) -> int:
    """Return a pool in which so many requests are preempted with about that probability."""
    low, high = 1, int(requests * held.blocks[-1]) + held.shared + 2
    while high - low > 1:
        middle = (low + high) // 2
        if preemption_probability(held, requests, middle) > probability:
            low = middle
        else:
            high = middle
    return high


@pytest.mark.slow
@pytest.mark.parametrize("mix", _mixes(), ids=lambda mix: mix.name)
def test_the_curve_is_what_a_scheduler_meets(mix: Mix) -> None:
    """At pools too small 30 % and 5 % of the time, the simulated share agrees within its error."""
    cache = shape(*mix.kinds, max_model_len=mix.max_model_len)
    held = held_blocks(mix.workload, cache, prefix_caching=True)
    for target in (0.3, 0.05):
        blocks = blocks_at(held, mix.requests, target)
        expected = preemption_probability(held, mix.requests, blocks)
        share, error = observed(mix, blocks, 8_000)
        assert abs(share - expected) <= 4 * error + 0.004, (expected, share, error)


def test_a_curve_that_forgets_who_stays_longer_is_found_out() -> None:
    """Negative control: counting every request alike does not agree with the scheduler."""
    cache, short, long = shape((FULL, 1)), 80, 800
    lengths = (LengthBin(short, short, 0.9), LengthBin(long, long, 0.1))
    mix = Mix("control", ((FULL, 1),), Workload(lengths, 0.3), 8)
    right = held_blocks(mix.workload, cache, prefix_caching=True)
    alike: dict[float, float] = {}
    for length, share in ((short, 0.9), (long, 0.1)):
        alone = held_blocks(lognormal_workload(length, length, 0.3), cache, prefix_caching=True)
        for size, weight in zip(alone.blocks, alone.weights, strict=True):
            alike[size] = alike.get(size, 0.0) + share * weight
    ordered = sorted(alike.items())
    wrong = HeldBlocks(tuple(size for size, _ in ordered), tuple(w for _, w in ordered), 0)
    blocks = blocks_at(right, mix.requests, 0.3)
    share, error = observed(mix, blocks, 6_000)
    assert abs(share - preemption_probability(right, mix.requests, blocks)) <= 4 * error + 0.004
    assert abs(share - preemption_probability(wrong, mix.requests, blocks)) > 4 * error + 0.004


@pytest.mark.parametrize(
    ("spec", "tokens", "blocks"),
    [
        (FULL, 16, 1),
        (FULL, 17, 2),
        (WINDOW, 128, 8),
        (WINDOW, 143, 9),
        (WINDOW, 144, 8),
        (CHUNK, 96, 6),
        (CHUNK, 97, 1),
        (STATE, 5000, 2),
        (replace(STATE, state_every_block=True), 529, 4),
        (LATENT, 65, 2),
    ],
)
def test_blocks_held_at_a_token(spec: KvSpec, tokens: int, blocks: int) -> None:
    """Blocks worked out by hand: a window frees a block once its last token is out of sight."""
    assert blocks_of(spec, tokens, RequestLength(8192, 0)) == blocks


def test_context_parallel_ranks_share_the_tokens_of_a_request() -> None:
    """Eight ranks hold an eighth of a request each, rounded up to a block."""
    assert blocks_of(LATENT, 1025, RequestLength(8192, 0, decode_context_parallel_size=8)) == 3


def test_equal_requests_leave_no_doubt() -> None:
    """Requests that always hold one block each fit as many times as there are blocks."""
    held = HeldBlocks((1.0,), (1.0,), 0)
    assert requests_at(held, 0.01, 11) == 10
    assert preemption_probability(held, 10, 11) == 0.0
    assert preemption_probability(held, 11, 11) == 1.0


def test_one_and_two_requests_are_exact() -> None:
    """Half of them hold 1 block, half 3: of four blocks two requests need more in one of four."""
    held = HeldBlocks((1.0, 3.0), (0.5, 0.5), 0)
    assert preemption_probability(held, 1, 3) == 0.5
    assert preemption_probability(held, 2, 5) == pytest.approx(0.25)


def test_many_requests_agree_with_the_binomial_law() -> None:
    """Of 20 requests with 1 or 2 blocks, the tail is that of the number of larger ones."""
    held = HeldBlocks((1.0, 2.0), (0.7, 0.3), 0)
    for larger in range(3, 12):
        tail = sum(math.comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(larger + 1, 21))
        found = preemption_probability(held, 20, 20 + larger + 1)
        assert found == pytest.approx(tail, rel=0.02, abs=1e-4)


def test_a_common_prefix_is_held_once() -> None:
    """With 160 tokens in common, ten blocks of full attention belong to all requests together."""
    workload = lognormal_workload(400, 400, 0.5, 160)
    shared = held_blocks(workload, shape((FULL, 1)), prefix_caching=True)
    alone = held_blocks(workload, shape((FULL, 1)), prefix_caching=False)
    assert (shared.shared, alone.shared) == (10, 0)
    assert alone.mean - shared.mean == pytest.approx(10)


def test_requests_too_long_are_never_in_flight() -> None:
    """A declared length admits its share of the requests, and nothing longer is ever held."""
    workload = histogram_workload([100, 200], [50, 50], 0.5)
    assert workload.accepted(150) == pytest.approx(0.75)
    assert 140 <= max(each.most for each in moments(workload, 150)) <= 149
    assert workload.accepted(50) == pytest.approx(50 / 100 * 0.5, abs=0.01)


def test_an_encoders_output_is_held_from_the_first_token_on() -> None:
    """Cross-attention keeps 1,500 tokens of an encoder in 94 blocks of 16, whatever is decoded."""
    spec = KvSpec("cross_attention", 16, 1)
    length = RequestLength(8192, 0, encoder_tokens=1500)
    assert [blocks_of(spec, tokens, length) for tokens in (1, 8192)] == [94, 94]


def test_sums_at_their_mean_have_the_tail_that_is_theirs() -> None:
    """Where the limit is the mean itself the binomial law is met too, also of unequal parts."""
    held = HeldBlocks((1.0, 2.0), (0.5, 0.5), 0)
    tail = sum(math.comb(21, k) for k in range(11, 22)) / 2**21
    # 21 requests hold 31.5 blocks on average: the threshold between 31 and 32 is the mean itself.
    assert preemption_probability(held, 21, 32) == pytest.approx(tail, abs=1e-9)
    skewed = HeldBlocks((1.0, 2.0), (0.75, 0.25), 0)
    tail = sum(math.comb(22, k) * 0.25**k * 0.75 ** (22 - k) for k in range(6, 23))
    assert preemption_probability(skewed, 22, 28) == pytest.approx(tail, abs=2e-3)


@pytest.mark.parametrize("probability", [0.001, 0.01, 0.05, 0.5])
@pytest.mark.parametrize(
    "held",
    [
        HeldBlocks((1.0, 2.0), (0.7, 0.3), 0),
        HeldBlocks((1.0, 400.0), (0.99, 0.01), 3),
        HeldBlocks((2.0, 7.0, 90.0), (0.3, 0.6, 0.1), 0),
    ],
)
def test_the_most_requests_are_found_wherever_the_search_begins(
    held: HeldBlocks, probability: float
) -> None:
    """The count found keeps to the probability and one more does not, however skewed the sizes."""
    for num_blocks in (5, 60, 500, 20_000):
        most = requests_at(held, probability, num_blocks)
        assert preemption_probability(held, most, num_blocks) <= probability
        assert preemption_probability(held, most + 1, num_blocks) > probability


def test_many_sizes_are_joined_and_keep_their_mean() -> None:
    """Requests of up to 8,000 tokens in blocks of one hold 4,096 sizes: 256 are kept of them."""
    fine = KvSpec("full_attention", 1, 1)
    workload = lognormal_workload(8000, 8000, 0.999)
    held = held_blocks(workload, shape((fine, 1)), prefix_caching=False)
    assert len(held.blocks) <= 257
    assert list(held.blocks) == sorted(held.blocks)
    assert sum(held.weights) == pytest.approx(1)
    (moment,) = moments(workload, 8192)
    assert held.mean == pytest.approx((moment.fewest + moment.most) / 2, rel=1e-3)


def test_windows_share_no_prefix() -> None:
    """Of 160 tokens in common a window keeps none: the request that needs them holds them."""
    workload = lognormal_workload(400, 400, 0.5, 160)
    held = held_blocks(workload, shape((WINDOW, 1)), prefix_caching=True)
    assert held.shared == 0
