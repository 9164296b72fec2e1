"""Each term of a card's memory, with coefficients that can be added by hand."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from app.core.coefficients import Bounds, exactly, largest, total
from app.core.engine_defaults import resolve_engine_args
from app.core.layout import Layout
from app.core.memory import (
    StageMemory,
    Start,
    graph_family,
    left_for_cache,
    profiles_encoder,
)
from app.core.model_spec import AttentionSpec, LayerSpec, MlaSpec, StateSpec
from app.core.request import Measured, SizingRequest
from app.core.units import GIB
from tests.core.memory_case import HIDDEN, LAYERS, VOCABULARY, card, dense, release, request, runner

EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512}


def start(asked: SizingRequest, *weights: int, total_gib: float = 90.0) -> Start:
    """Return the start of a request with 90 GiB of budget and 10 GiB of weights a stage."""
    coefficients = asked.release.memory
    assert coefficients is not None
    stages = weights or (10 * GIB,) * asked.layout.pipeline_parallel_size
    budget = exactly(total_gib * GIB)
    return Start(asked, resolve_engine_args(asked), coefficients, budget, stages)


def stage(asked: SizingRequest, *weights: int) -> StageMemory:
    """Return the memory of the only stage."""
    (only,) = start(asked, *weights).stages()
    return only


def hidden(tokens: int) -> int:
    """Return the hidden states of the profile run, bytes."""
    return 2 * tokens * HIDDEN


def test_what_is_left_is_the_budget_minus_every_term() -> None:
    """Weights, peak, buffers, non-torch memory and the graph estimate leave the budget."""
    only = stage(request(max_num_seqs=16, max_num_batched_tokens=2048))
    taken = sum(term.likely for _, term in only.terms())
    assert only.available.likely == 90 * GIB - taken
    assert [code for code, _ in only.terms()] == [
        "weights",
        "peak_activation",
        "persistent_buffers",
        "non_torch",
        "cudagraph_estimate",
    ]


def test_independent_spreads_add_up_like_the_sides_of_a_triangle() -> None:
    """Ends of different terms do not meet: 3 and 4 make 5, downward and upward on their own."""
    left = left_for_cache(
        Bounds(98.0, 100.0, 101.0),
        [Bounds(9.0, 10.0, 13.0), Bounds(20.0, 20.0, 24.0)],
        Bounds(-2.0, 0.0, 0.0),
    )
    assert left.likely == 70.0
    assert left.low == pytest.approx(70.0 - (2**2 + 3**2 + 4**2) ** 0.5)
    assert left.high == pytest.approx(70.0 + (1**2 + 1**2 + 2**2) ** 0.5)


def test_the_sampler_sets_the_peak_where_many_sequences_are_sampled() -> None:
    """Rows x vocabulary x bytes a logit, on top of the hidden states of all tokens."""
    asked = request(max_num_seqs=2048, max_num_batched_tokens=2048)
    logits = 2048 * VOCABULARY
    assert stage(asked).peak_activation == Bounds(
        max(8.0 * logits + hidden(2048), 2.0 * 2048 * (2 * HIDDEN + 3 * 4096) + hidden(2048)),
        10.0 * logits + hidden(2048),
        12.0 * logits + hidden(2048),
    )


def test_no_more_rows_are_sampled_than_tokens_run() -> None:
    """The sampler sees min(tokens, sequences) rows."""
    fewer = start(request(max_num_seqs=2048, max_num_batched_tokens=2048))
    (few,) = replace(fewer, resolved=replace(fewer.resolved, max_num_seqs=4096)).stages()
    assert few.peak_activation.likely == 10.0 * 2048 * VOCABULARY + hidden(2048)


def test_the_forward_pass_sets_the_peak_where_few_are_sampled() -> None:
    """With one sequence the widest layer over all tokens is the peak, without spread."""
    only = stage(request(max_num_seqs=1, max_num_batched_tokens=2048))
    assert only.peak_activation == exactly(2 * 2048 * (2 * HIDDEN + 3 * 4096) + hidden(2048))


def test_an_empty_compile_cache_can_set_the_peak() -> None:
    """Cold and warm peak differ by what compiling allocates: a share of the embedding table."""
    wide = dense(vocab_size=1_000_000)
    cold = release(cold_compile=Bounds(0.0, 0.5, 1.0))
    only = stage(request(model=wide, release=cold, max_num_seqs=1, max_num_batched_tokens=16))
    table = 2 * 1_000_000 * HIDDEN
    assert only.peak_activation.likely == 0.5 * table
    assert only.cold_peak == table
    sampled = 10.0 * 1_000_000 + hidden(16)
    assert only.warm_peak == sampled
    assert only.available_after(only.warm_peak) - only.available_after(only.cold_peak) == (
        only.cold_peak - only.warm_peak
    )


def test_eager_starts_compile_nothing_and_capture_nothing() -> None:
    """With --enforce-eager neither the compile term nor the graphs are there."""
    cold = release(cold_compile=exactly(1.0))
    asked = request(
        model=dense(vocab_size=1_000_000),
        release=cold,
        max_num_seqs=1,
        max_num_batched_tokens=16,
        enforce_eager=True,
    )
    only = stage(asked)
    assert only.cold_peak == only.warm_peak
    assert only.cudagraph_estimate == exactly(0.0)
    assert start(asked).captured_graphs() == exactly(0.0)


def test_equal_stages_are_worked_out_once() -> None:
    """A pipeline may have hundreds of stages: those with equal weights share one estimate."""
    asked = request(layout=Layout(pipeline_parallel_size=4))
    first, second, third, last = start(asked, GIB, 2 * GIB, 2 * GIB, GIB).stages()
    assert second is third
    assert first is not last
    assert second.weights != first.weights


def test_compiling_happens_where_the_tables_lie() -> None:
    """Of three pipeline stages the first and the last hold the vocabulary, the middle does not."""
    asked = request(
        model=dense(vocab_size=1_000_000, layers=dense().layers * 2),
        release=release(cold_compile=exactly(1.0)),
        layout=Layout(pipeline_parallel_size=3),
        max_num_seqs=1,
        max_num_batched_tokens=16,
    )
    first, middle, last = start(asked).stages()
    table = 2 * 1_000_000 * HIDDEN
    assert first.peak_activation.likely == table
    assert middle.peak_activation.likely == 2 * 16 * (2 * HIDDEN + 3 * 4096) + hidden(16)
    assert last.peak_activation.likely == table


def test_only_the_last_stage_samples() -> None:
    """Earlier pipeline stages hand hidden states on."""
    asked = request(
        layout=Layout(pipeline_parallel_size=2), max_num_seqs=4096, max_num_batched_tokens=4096
    )
    first, last = start(asked).stages()
    assert first.peak_activation.likely < last.peak_activation.likely
    assert last.peak_activation.likely == 10.0 * 4096 * VOCABULARY + hidden(4096)


def test_the_v2_runner_keeps_state_for_every_sequence() -> None:
    """Counts and masks over the vocabulary stay allocated, on the last stage alone."""
    keeping = release(
        runners=MappingProxyType({"V1": runner(), "V2": runner(sampler_state_bytes_per_logit=4.0)})
    )
    asked = request(release=keeping, max_num_seqs=100, layout=Layout(pipeline_parallel_size=2))
    first, last = start(asked).stages()
    assert first.persistent_buffers == exactly(0.0)
    assert last.persistent_buffers == exactly(4.0 * 100 * VOCABULARY)


def test_the_experts_workspace_is_kept_or_passes() -> None:
    """Kept it stands beside the sampler, passing it is one more phase of the peak."""
    model = dense(**EXPERTS)
    workspace = 2 * 2048 * 2 * (1024 + 1024)
    few = {"max_num_seqs": 1, "max_num_batched_tokens": 2048}
    kept = stage(request(model=model, release=release(moe_workspace_kept=True), **few))
    passing = stage(
        request(model=dense(**EXPERTS, intermediate_size=8, num_attention_heads=1,
                            num_key_value_heads=1), **few)
    )  # fmt: skip
    assert kept.persistent_buffers == exactly(workspace)
    assert passing.persistent_buffers == exactly(0.0)
    assert passing.peak_activation.likely == workspace + hidden(2048)


def test_sparse_attention_shares_its_workspace_with_the_experts() -> None:
    """The larger of both stays allocated."""
    sparse = dense(layers=(LayerSpec(MlaSpec(512, 64, index_head_dim=128, sparse=True)),) * LAYERS)
    asked = request(model=sparse, max_model_len=2000, max_num_batched_tokens=16)
    assert stage(asked).persistent_buffers == exactly(5 * 2000 * 1152)


def test_groups_of_cards_pay_for_talking() -> None:
    """Tensor and pipeline parallelism take the coefficient of a group."""
    assert stage(request()).non_torch == exactly(GIB)
    assert stage(request(layout=Layout(tensor_parallel_size=2))).non_torch == exactly(2 * GIB)
    paired = start(request(layout=Layout(pipeline_parallel_size=2))).stages()
    assert paired[0].non_torch == exactly(2 * GIB)


def test_cards_that_share_the_hosts_memory_take_more() -> None:
    """GB10 and its like have a term of their own beside the non-torch memory."""
    shared = replace(card(), integrated_memory=True)
    assert stage(request(gpu=shared)).non_torch == exactly(4 * GIB)


def test_the_graph_estimate_grows_with_sizes_layers_and_family() -> None:
    """Base + sizes/51 x (layers x coefficient + family)."""
    graphs = runner(graph_base_bytes=exactly(7.0), graph_layer_bytes=exactly(51.0))
    own = release(runners=MappingProxyType({"V1": graphs, "V2": graphs}))
    asked = request(release=own, max_num_seqs=2)
    sizes = resolve_engine_args(asked).cudagraph_capture_sizes
    assert sizes == 3
    assert stage(asked).cudagraph_estimate.likely == pytest.approx(
        7.0 + sizes / 51 * (51.0 * LAYERS + GIB)
    )


def test_graphs_are_outside_the_budget_before_0_20() -> None:
    """Older releases capture after the cache was sized; the amount is known all the same."""
    old = request(release=release("0.19.1"))
    assert stage(old).cudagraph_estimate == exactly(0.0)
    assert start(old).captured_graphs().likely > 0


def test_measured_terms_replace_estimates() -> None:
    """Each measured term stands without spread, and nothing is unexplained with two of them."""
    spread = release(unexplained_bytes=Bounds(-1.0 * GIB, 0.0, GIB))
    measured = Measured(
        weights_bytes=11,
        peak_activation_bytes=22,
        non_torch_bytes=33,
        cudagraph_bytes=44,
    )
    only = stage(request(release=spread, measured=measured))
    assert [term for _, term in only.terms()] == [
        exactly(11),
        exactly(22),
        exactly(0.0),
        exactly(33),
        exactly(44),
    ]
    assert only.unexplained == exactly(0.0)
    assert only.available == exactly(90 * GIB - 110)
    assert only.cold_peak == only.warm_peak == 22


@pytest.mark.parametrize(
    "known", [Measured(peak_activation_bytes=5), Measured(non_torch_bytes=5)], ids=["peak", "other"]
)
def test_one_measured_term_leaves_the_rest_unexplained(known: Measured) -> None:
    """The spread of starts stays until peak and non-torch memory are both known."""
    spread = release(unexplained_bytes=Bounds(-1.0, 0.0, 2.0))
    only = stage(request(release=spread, measured=known))
    assert only.unexplained == Bounds(-1.0, 0.0, 2.0)


def test_weights_carry_the_spread_of_their_quantisation() -> None:
    """Loaded over predicted bytes, by method, else the common one."""
    shares = release(weights=MappingProxyType({"": Bounds(0.9, 1.0, 1.2), "awq": exactly(1.5)}))
    assert stage(request(release=shares), 100).weights == Bounds(90.0, 100.0, 120.0)
    asked = request(release=shares)
    quantized = replace(asked.checkpoint.quantization, method="awq")
    asked = replace(asked, checkpoint=replace(asked.checkpoint, quantization=quantized))
    assert stage(asked, 100).weights == exactly(150.0)


@pytest.mark.parametrize(
    ("args", "profiled"),
    [
        ({}, True),
        ({"language_model_only": True}, False),
        ({"limit_mm_per_prompt": (("image", 0), ("video", 0))}, False),
        ({"limit_mm_per_prompt": (("image", 0), ("video", 1))}, True),
    ],
)
def test_the_encoder_is_profiled_unless_it_cannot_be_used(
    args: dict[str, object], *, profiled: bool
) -> None:
    """Text-only mode and limits of 0 keep the encoder out of the profile run."""
    model = dense(multimodal=True, model_type="tower_vl")
    asked = request(model=model, max_num_seqs=1, max_num_batched_tokens=16, **args)
    assert profiles_encoder(model, resolve_engine_args(asked)) is profiled
    assert (stage(asked).peak_activation.likely == 4 * GIB) is profiled


def test_text_models_have_no_encoder() -> None:
    """A model without a tower profiles none."""
    assert not profiles_encoder(dense(), resolve_engine_args(request()))


def test_the_encoder_of_an_unknown_type_takes_the_common_coefficient() -> None:
    """The longest matching prefix of the model type counts."""
    common = dense(multimodal=True, model_type="other")
    asked = request(model=common, max_num_seqs=1, max_num_batched_tokens=16)
    assert stage(asked).peak_activation.likely == GIB


def test_only_the_first_stage_holds_the_encoder() -> None:
    """Later pipeline stages see hidden states only."""
    asked = request(
        model=dense(multimodal=True, model_type="tower"),
        layout=Layout(pipeline_parallel_size=2),
        max_num_seqs=1,
        max_num_batched_tokens=16,
    )
    first, last = start(asked).stages()
    assert first.peak_activation.likely == 4 * GIB
    assert last.peak_activation.likely < GIB


def test_families_are_told_apart_by_their_caches() -> None:
    """Sparse before latent before recurrent before experts."""
    full = LayerSpec(AttentionSpec("full_attention", 8, 128, 128))
    state = LayerSpec(StateSpec("mamba2", 4, 8, 64, 8, 128))
    latent = LayerSpec(MlaSpec(512, 64))
    sparse = LayerSpec(MlaSpec(512, 64, index_head_dim=128, sparse=True))
    assert graph_family(dense()) == "dense"
    assert graph_family(dense(**EXPERTS)) == "moe"
    assert graph_family(dense(**EXPERTS, layers=(full, state))) == "hybrid"
    assert graph_family(dense(**EXPERTS, layers=(latent,))) == "mla"
    assert graph_family(dense(**EXPERTS, layers=(latent, sparse))) == "sparse_mla"


def test_bounds_add_scale_and_compare() -> None:
    """The three values move together; the peak of phases is the largest of each."""
    one, two = Bounds(1.0, 2.0, 3.0), Bounds(0.0, 5.0, 1.0)
    assert one.times(2.0) == Bounds(2.0, 4.0, 6.0)
    assert one.plus(1.0) == Bounds(2.0, 3.0, 4.0)
    assert largest([one, two]) == Bounds(1.0, 5.0, 3.0)
    assert total([one, two]) == Bounds(1.0, 7.0, 4.0)
    assert exactly(4.0) == Bounds(4.0, 4.0, 4.0)
