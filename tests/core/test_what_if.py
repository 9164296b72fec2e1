"""What every flag changes, recomputed for one server."""

import pytest

from app.core.checkpoint import Checkpoint
from app.core.layout import Layout
from app.core.model_spec import AttentionSpec, LayerSpec, StateSpec
from app.core.request import SizingRequest
from app.core.sizing import size
from app.core.units import GIB
from app.core.what_if import FlagRow, mixes_caches, what_if
from tests.core.memory_case import dense, request

FULL = dense().layers
WINDOW = LayerSpec(AttentionSpec("sliding_window", 8, 128, 128, window=128))
STATE = LayerSpec(StateSpec("gated_delta_net", 4, 16, 128, 8, 128))


def rows(asked: SizingRequest, *checkpoints: Checkpoint) -> dict[str, FlagRow]:
    """Return the rows of a request by flag; no flag has two."""
    found = what_if(size(asked), checkpoints)
    by_flag = {row.flag: row for row in found}
    assert len(by_flag) == len(found)
    return by_flag


def test_a_text_model_on_one_card_has_these_rows() -> None:
    """Memory first, then what divides, then what changes neither."""
    assert [(row.flag, row.kind) for row in what_if(size(request()))] == [
        ("gpu_memory_utilization", "memory"),
        ("kv_cache_memory_bytes", "memory"),
        ("max_num_batched_tokens", "memory"),
        ("max_num_seqs", "memory"),
        ("enforce_eager", "memory"),
        ("max_cudagraph_capture_size", "memory"),
        ("tensor_parallel_size", "memory"),
        ("cpu_offload_gb", "memory"),
        ("enable_lora", "memory"),
        ("max_model_len", "divisor"),
        ("kv_cache_dtype", "divisor"),
        ("block_size", "divisor"),
        ("enable_prefix_caching", "neither"),
        ("async_scheduling", "neither"),
    ]


def test_the_value_now_is_never_tried_again() -> None:
    """Each row shows what would change."""
    for row in what_if(size(request(gpu_memory_utilization=0.95))):
        assert all(other.value != row.now for other in row.others), row.flag


def test_more_of_the_card_gives_more_memory() -> None:
    """Utilization 0.95 leaves 3 GiB more than 0.92, 0.9 leaves 2 GiB less."""
    row = rows(request())["gpu_memory_utilization"]
    assert row.now == 0.92
    now = size(request()).available_kv_cache_memory
    assert now is not None
    for other, gib in zip(row.others, (-2, 3), strict=True):
        available = other.result.available_kv_cache_memory
        assert available is not None
        assert available.likely - now.likely == pytest.approx(gib * GIB, abs=2)


def test_a_shorter_context_divides_by_less() -> None:
    """Half the length, twice the requests; tokens stay about the same."""
    asked = request(max_model_len=1024)
    half, double = rows(asked)["max_model_len"].others
    assert (half.value, double.value) == (512, 2048)
    now, then = size(asked).cache, half.result.cache
    assert now is not None
    assert then is not None
    assert then.max_concurrency == pytest.approx(2 * now.max_concurrency)
    assert then.kv_cache_size_tokens == pytest.approx(now.kv_cache_size_tokens, rel=0.001)


def test_no_length_beyond_the_models_own_is_tried() -> None:
    """At the longest length only the shorter one is offered, at one token none."""
    (only,) = rows(request(max_model_len=131072))["max_model_len"].others
    assert only.value == 65536
    (longer,) = rows(request(max_model_len=1))["max_model_len"].others
    assert longer.value == 2


def test_fp8_halves_the_bytes_of_a_token() -> None:
    """Other cache dtypes are tried with their result, or vLLM's refusal."""
    row = rows(request())["kv_cache_dtype"]
    by_value = {other.value: other.result for other in row.others}
    assert set(by_value) == {"bfloat16", "fp8"}
    assert by_value["fp8"].cache is not None
    now = size(request()).cache
    assert now is not None
    assert by_value["fp8"].cache.bytes_per_block == now.bytes_per_block // 2
    already = rows(request(kv_cache_dtype="fp8"))["kv_cache_dtype"]
    assert [other.value for other in already.others] == ["bfloat16", "nvfp4"]


def test_flags_that_change_neither_leave_every_figure() -> None:
    """Prefix caching and scheduling cost no memory where all layers cache alike."""
    now = size(request()).cache
    for flag in ("enable_prefix_caching", "async_scheduling"):
        (other,) = rows(request())[flag].others
        assert other.result.cache == now


def test_a_fixed_cache_is_doubled() -> None:
    """Unset it is tried at 16 GiB, set at twice its size."""
    assert rows(request())["kv_cache_memory_bytes"].now is None
    (unset,) = rows(request())["kv_cache_memory_bytes"].others
    assert unset.value == 16 * GIB
    (twice,) = rows(request(kv_cache_memory_bytes=GIB))["kv_cache_memory_bytes"].others
    assert twice.value == 2 * GIB


def test_cards_per_copy_are_halved_and_doubled() -> None:
    """One card cannot be halved; with several the cache can be split by context as well."""
    assert [o.value for o in rows(request())["tensor_parallel_size"].others] == [2]
    paired = rows(request(layout=Layout(tensor_parallel_size=2)))
    assert [o.value for o in paired["tensor_parallel_size"].others] == [1, 4]
    split = paired["decode_context_parallel_size"]
    assert (split.now, [o.value for o in split.others]) == (1, [2])
    joined = rows(request(layout=Layout(tensor_parallel_size=2, decode_context_parallel_size=1)))
    assert "decode_context_parallel_size" in joined


def test_other_precisions_are_tried_where_there_are_any() -> None:
    """Two at most, never the same precision."""
    same = Checkpoint("maker/same", "bf16")
    others = [Checkpoint(f"maker/{name}", name) for name in ("fp8", "nvfp4", "awq-int4")]
    row = rows(request(), same, *others)["checkpoint"]
    assert row.now == "maker/model"
    assert [other.value for other in row.others] == ["maker/fp8", "maker/nvfp4"]
    assert "checkpoint" not in rows(request(), same)


def test_offload_adds_eight_gib() -> None:
    """From what is set now."""
    row = rows(request(cpu_offload_gb=4.0))["cpu_offload_gb"]
    assert (row.now, [other.value for other in row.others]) == (4.0, [12.0])


def test_multimodal_models_can_leave_their_tower() -> None:
    """Text-only mode has a row, and the other way round."""
    found = rows(request(model=dense(multimodal=True)))
    (off,) = found["language_model_only"].others
    (none,) = found["limit_mm_per_prompt"].others
    assert none.value == '{"audio":0,"image":0,"video":0}'
    assert none.result.cache == off.result.cache
    assert off.value is True
    assert "language_model_only" not in rows(request())


def test_drafts_have_a_row_where_the_files_hold_them() -> None:
    """One draft token is tried, or none where there are some."""
    model = dense(mtp_layers=(FULL[0],))
    row = rows(request(model=model))["speculative_config"]
    assert (row.now, [other.value for other in row.others]) == (0, [1])
    without = Checkpoint("maker/bare", "bf16", includes=frozenset())
    assert "speculative_config" not in rows(request(model=model, checkpoint=without))


def test_mixed_caches_have_the_hybrid_managers_row() -> None:
    """Windows beside full attention: the manager matters, and so do the scheduler's flags."""
    found = rows(request(model=dense(layers=(*FULL, WINDOW))))
    assert found["disable_hybrid_kv_cache_manager"].kind == "divisor"
    assert found["enable_prefix_caching"].kind == "divisor"
    assert found["async_scheduling"].kind == "divisor"


@pytest.mark.parametrize(
    ("layers", "mixed"),
    [
        (FULL, False),
        ((*FULL, WINDOW), True),
        ((STATE,), True),
        ((*FULL, LayerSpec(None)), False),
    ],
)
def test_mixed_means_different_caches_or_states(
    layers: tuple[LayerSpec, ...], *, mixed: bool
) -> None:
    """Layers without a cache of their own do not count."""
    assert mixes_caches(dense(layers=layers)) is mixed


def test_nothing_is_tried_where_vllm_refuses_at_once() -> None:
    """Three cards for eight heads have no table."""
    assert what_if(size(request(layout=Layout(tensor_parallel_size=3)))) == ()
