"""What to change when a server does not fit: sized before it is offered, the smallest first."""

from dataclasses import replace

import pytest

from app.core.checkpoint import Checkpoint, Quantization
from app.core.coefficients import exactly
from app.core.layout import Layout
from app.core.model_spec import LayerSpec, LengthSpec, StateSpec, TensorGroup
from app.core.request import Measured, SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from app.core.ways_out import Alternatives, Change, could_hold, ways_out
from tests.core.memory_case import card, dense, release, request

NONE = Alternatives(tensor_parallel_sizes=())
MANY_LAYERS = dense(layers=dense().layers * 50)
BIG = dense(
    tensors=(TensorGroup("mlp.down_proj", "mlp", 0, 1024 * 64, 1024 * 1024, quantizable=True),)
)


def changes(asked: SizingRequest, alternatives: Alternatives = NONE) -> list[Change]:
    """Return the changes that are offered; each one, applied, fits."""
    result = size(asked)
    assert not result.ok or result.verdict_requests == 0
    found = ways_out(result, alternatives)
    for way in found:
        assert way.result.ok
        assert way.result.verdict_requests >= 1
        assert way.change
    return [way.change for way in found]


def test_the_longest_usual_context_that_fits_comes_first() -> None:
    """100 GiB for one request do not fit; of 96k, 64k ... the first that does is offered."""
    found = changes(request(model=MANY_LAYERS, max_model_len=131072))
    (flag, length), *rest = found[0]
    assert flag == "max_model_len"
    assert rest == []
    assert length == 98304


def test_a_smaller_cache_dtype_is_offered_by_itself() -> None:
    """FP8 halves the request."""
    found = changes(request(model=MANY_LAYERS, max_model_len=131072))
    assert (("kv_cache_dtype", "fp8"),) in found


def test_a_length_beyond_the_models_is_answered_with_the_models() -> None:
    """What the model allows is the first way out."""
    model = dense(length=LengthSpec((("max_position_embeddings", 100_000),)))
    asked = request(model=model, max_model_len=200_000)
    assert changes(asked)[0] == (("max_model_len", 100_000),)


def test_the_smallest_group_that_fits_is_offered() -> None:
    """Two cards are tried before four; a count that vLLM refuses is passed over."""
    asked = request(model=MANY_LAYERS, max_model_len=131072)
    found = changes(asked, Alternatives(tensor_parallel_sizes=(1, 3, 4, 2)))
    assert (("tensor_parallel_size", 2),) in found


def test_copies_melt_into_a_group_on_the_same_cards() -> None:
    """Four copies become two pairs, and the change says so."""
    asked = request(model=MANY_LAYERS, max_model_len=131072, layout=Layout(replicas=4))
    found = changes(asked, Alternatives(tensor_parallel_sizes=(2,)))
    assert (("tensor_parallel_size", 2), ("replicas", 2)) in found


def test_heads_that_do_not_divide_get_the_next_larger_group_else_a_smaller_one() -> None:
    """Three cards: four, and where there are no more than three, two."""
    three = request(layout=Layout(tensor_parallel_size=3))
    assert changes(three, Alternatives(tensor_parallel_sizes=(1, 2, 4))) == [
        (("tensor_parallel_size", 4),)
    ]
    assert changes(three, Alternatives(tensor_parallel_sizes=(1, 2))) == [
        (("tensor_parallel_size", 2),)
    ]


def test_a_budget_that_is_not_free_is_lowered_not_raised() -> None:
    """0.995 of the card is too much, 0.95 is not."""
    found = changes(request(gpu_memory_utilization=0.995))
    assert (("gpu_memory_utilization", 0.95),) in found


def test_more_of_the_card_is_offered_where_a_little_is_missing() -> None:
    """At 0.02 nothing is left; 0.92 leaves enough."""
    found = changes(request(gpu_memory_utilization=0.02))
    assert (("gpu_memory_utilization", 0.92),) in found


def test_smaller_batches_are_offered_where_the_profile_run_takes_all() -> None:
    """100,000 sequences of a large vocabulary leave nothing, 256 do."""
    asked = request(
        model=dense(vocab_size=100_000), max_num_seqs=100_000, max_num_batched_tokens=100_000
    )
    assert (("max_num_seqs", 256), ("max_num_batched_tokens", 2048)) in changes(asked)


def test_states_set_the_sequences_where_they_are_too_few() -> None:
    """A hybrid gets as many sequences as it has blocks."""
    state = LayerSpec(StateSpec("gated_delta_net", 4, 16, 128, 8, 128))
    asked = request(
        model=dense(layers=(state, *dense().layers)),
        max_num_seqs=500_000,
        max_num_batched_tokens=500_000,
    )
    result = size(asked)
    assert result.reason is not None
    blocks = dict(result.reason.numbers)["num_gpu_blocks"]
    assert (("max_num_seqs", blocks),) in changes(asked)


def test_context_parallelism_is_taken_back_where_it_is_refused() -> None:
    """Eight KV heads on two cards cannot be split by context."""
    layout = Layout(tensor_parallel_size=2, decode_context_parallel_size=2)
    assert (("decode_context_parallel_size", 1),) in changes(request(layout=layout))


def test_another_precision_comes_after_the_same_files_and_before_other_cards() -> None:
    """128 GiB of weights: half of it fits by itself, larger cards come last."""
    small = Checkpoint("maker/fp8", "fp8", Quantization("fp8", (("mlp", "fp8_tensor"),)))
    large = replace(card(total_gib=180.0, driver_mib=180 * 1024), slug="large")
    alternatives = Alternatives((small,), (large,), (1, 2))
    found = changes(request(model=BIG), alternatives)
    assert found == [
        (("checkpoint", "maker/fp8"),),
        (("gpu", "large"),),
    ]


def test_precision_and_cards_are_combined_where_neither_is_enough() -> None:
    """Four times the weights: FP8 alone does not fit, FP8 on four cards does."""
    huge = dense(
        tensors=(
            TensorGroup("mlp.down_proj", "mlp", 0, 1024 * 256, 1024 * 1024, 1, "row",
                        quantizable=True),
        )
    )  # fmt: skip
    small = Checkpoint("maker/fp8", "fp8", Quantization("fp8", (("mlp", "fp8_tensor"),)))
    asked = request(model=huge)
    found = changes(asked, Alternatives((small,), (), (1, 2, 4)))
    assert found == [(("checkpoint", "maker/fp8"), ("tensor_parallel_size", 4))]
    other = replace(card(total_gib=180.0, driver_mib=180 * 1024), slug="large")
    found = changes(asked, Alternatives((), (other,), (1, 2, 4)))
    assert (("gpu", "large"), ("tensor_parallel_size", 4)) in found


def test_the_same_files_and_card_are_no_alternative() -> None:
    """Only something else is offered."""
    asked = request(model=BIG)
    same = Alternatives((asked.checkpoint,), (asked.gpu,), (1,))
    assert changes(asked, same) == []


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (request(model=BIG), False),
        (request(), True),
        (request(model=BIG, layout=Layout(tensor_parallel_size=2)), True),
        (request(model=BIG, layout=Layout(data_parallel_size=2)), True),
        (request(model=BIG, gpu=card(None, None)), True),
        (request(model=BIG, gpu=card(None, 200 * 1024)), True),
        (request(model=BIG, gpu_total_memory_bytes=200 * GIB), True),
        (request(model=BIG, cpu_offload_gb=20.0), True),
        (request(model=BIG, measured=Measured(weights_bytes=1)), True),
        (request(model=BIG, measured=Measured(available_kv_cache_memory_bytes=1)), True),
    ],
)
def test_what_cannot_lie_on_the_cards_is_not_sized(asked: SizingRequest, *, holds: bool) -> None:
    """Four fifths of the files against all cards' memory; what is not known may hold."""
    assert could_hold(asked) is holds


def test_a_server_that_starts_but_promises_nothing_gets_ways_out_too() -> None:
    """One request by the log, none by the rule: a shorter context helps."""
    roomy = release(
        non_torch_bytes=exactly(0.0), context_bytes=exactly(0.0), unexplained_bytes=exactly(0.0)
    )
    asked = request(release=roomy, model=MANY_LAYERS, max_model_len=117_000)
    result = size(asked)
    assert result.ok
    assert result.verdict_requests == 0
    assert changes(asked)[0][0][0] == "max_model_len"


def test_nothing_is_offered_where_nothing_helps() -> None:
    """Too much for every cache dtype, length and batch: no way out is invented."""
    assert changes(request(model=BIG)) == []
