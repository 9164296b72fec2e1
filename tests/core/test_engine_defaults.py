"""What a start resolves to where the person left it open, and what it refuses."""

from dataclasses import replace

import pytest

from app.core.capture_sizes import capture_sizes
from app.core.engine import ResolvedEngineArgs, SpeculativeConfig
from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import cache_shape
from app.core.layout import Layout
from app.core.reasons import Refusal
from tests.core.memory_case import dense, request, shipped
from tests.core.oracle import releases
from tests.core.starts import asked


def resolved(*args: object, **kwargs: object) -> ResolvedEngineArgs:
    """Resolve a start."""
    return resolve_engine_args(asked(*args, **kwargs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("card", "version", "tokens", "seqs"),
    [
        ("h100-80gb-hbm3", "0.33.0", 8192, 1024),
        ("a100-sxm4-80gb", "0.8.5", 8192, 1024),
        ("a100-sxm4-80gb", "0.33.0", 2048, 256),
        ("l40s", "0.33.0", 2048, 256),
        ("b200", "0.27.1", 8192, 1024),
        ("b200", "0.28.0", 16384, 1024),
        ("gb10", "0.32.0", 8192, 1024),
        ("gb10", "0.33.0", 2048, 256),
    ],
)
def test_batches_follow_card_and_release(card: str, version: str, tokens: int, seqs: int) -> None:
    """By the memory that the driver reports, with exceptions by name and capability."""
    found = resolved(card=card, version=version)
    assert (found.max_num_batched_tokens, found.max_num_seqs) == (tokens, seqs)


def test_given_batches_are_never_altered() -> None:
    """Only what is left open is bounded by the length and the other of the two."""
    given = resolved(max_num_batched_tokens=4000, max_num_seqs=7)
    assert (given.max_num_batched_tokens, given.max_num_seqs) == (4000, 7)
    assert resolved(max_num_seqs=2, max_model_len=100).max_num_batched_tokens == 200
    assert resolved(max_num_batched_tokens=64).max_num_seqs == 64
    whole = resolved(enable_chunked_prefill=False, max_model_len=50_000)
    assert whole.max_num_batched_tokens == 50_000


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"max_num_batched_tokens": 64, "max_num_seqs": 65}, "greater than or equal to max_num_s"),
        (
            {
                "max_num_batched_tokens": 4096,
                "enable_chunked_prefill": False,
                "max_model_len": 5000,
            },
            "max_num_batched_tokens (4096) is smaller than max_model_len (5000)",
        ),
        ({"kv_cache_dtype": "float16"}, 'kv_cache_dtype="float16" is incompatible with'),
        ({"layout": Layout(enable_expert_parallel=True)}, "Number of experts in the model must"),
        ({"layout": Layout(tensor_parallel_size=3)}, "attention heads (32) must be divisible"),
        (
            {"layout": Layout(tensor_parallel_size=4, decode_context_parallel_size=3)},
            "tp_size=4 must be divisible by dcp_size=3.",
        ),
        (
            {"layout": Layout(tensor_parallel_size=8, decode_context_parallel_size=2)},
            "to be greater than the model's total number of KV heads (8)",
        ),
        (
            {"layout": Layout(tensor_parallel_size=16, decode_context_parallel_size=4)},
            "(4) exceeds the maximum supported value (2)",
        ),
        (
            {"speculative_config": SpeculativeConfig("mtp", 1)},
            "Unsupported speculative method: 'mtp'",
        ),
        ({"model": "deepseek-v3", "kv_cache_dtype": "nvfp4"}, "nvfp4 KV cache is not supported"),
        (
            {"model": "nemotron-3-nano", "layout": Layout(tensor_parallel_size=16)},
            "does not divide num_groups",
        ),
        (
            {"model": "gpt-oss-20b", "layout": Layout(tensor_parallel_size=16)},
            "integer modulo by zero",
        ),
    ],
)
def test_what_cannot_start_is_refused_in_vllms_words(args: dict[str, object], text: str) -> None:
    """Before any memory is looked at, in the words of 0.33.0."""
    with pytest.raises(Refusal) as refused:
        resolved(**args)
    assert text in refused.value.reason.vllm_error


def test_a_check_is_silent_where_the_release_had_none() -> None:
    """Negative control: what 0.33.0 refuses started before the check came."""
    assert resolved(version="0.32.0", kv_cache_dtype="float16").cache_dtype == "float16"
    uneven = Layout(tensor_parallel_size=6, decode_context_parallel_size=4)
    with pytest.raises(Refusal) as refused:
        resolved("deepseek-v3", version="0.25.1", layout=uneven)
    assert refused.value.reason.code == "heads_not_divisible"


def test_auto_takes_the_dtype_that_the_checkpoint_declares() -> None:
    """From 0.14.0 on; before, `auto` is the model's own dtype."""
    fp8 = "llama-3.3-70b-fp8-modelopt"
    assert resolved(fp8).cache_dtype == "fp8_e4m3"
    assert resolved(fp8, version="0.13.0").cache_dtype == "auto"
    assert resolved(fp8, kv_cache_dtype="bfloat16").cache_dtype == "bfloat16"
    assert resolved().cache_dtype == "auto"


def test_prefix_caching_and_states() -> None:
    """Hybrids cache prefixes by default from 0.26.0; then states are kept for them."""
    assert resolved().enable_prefix_caching
    for version, caching, mode in (
        ("0.11.0", False, "none"),
        ("0.25.1", False, "none"),
        ("0.26.0", True, "align"),
        ("0.33.0", True, "align"),
    ):
        found = resolved("qwen3-next-80b-a3b", version=version)
        assert (found.enable_prefix_caching, found.mamba_cache_mode) == (caching, mode), version
    off = resolved("qwen3-next-80b-a3b", enable_prefix_caching=False)
    assert off.mamba_cache_mode == "none"
    early = resolved("qwen3-next-80b-a3b", version="0.13.0", enable_prefix_caching=True)
    assert not early.enable_prefix_caching
    assert resolved(
        "nemotron-3-nano", version="0.31.0", mamba_cache_mode="all"
    ).mamba_cache_mode == ("all")


def test_batches_in_flight() -> None:
    """Two with async scheduling, one more a pipeline stage; before 0.26.0 windows keep one."""
    pipeline = Layout(pipeline_parallel_size=3)
    assert resolved().max_in_flight_tokens == 2 * 8192
    assert resolved(async_scheduling=False).max_in_flight_tokens == 8192
    assert resolved(layout=pipeline).max_in_flight_tokens == 4 * 8192
    assert resolved(version="0.25.1", layout=pipeline).max_in_flight_tokens == 8192


def test_drafts_add_layers() -> None:
    """The checkpoint's own MTP layers, one for EAGLE, none for n-grams."""
    mtp = SpeculativeConfig("mtp", 2)
    assert resolved("qwen3-next-80b-a3b", speculative_config=mtp).draft_layers == 1
    assert resolved(speculative_config=SpeculativeConfig("eagle3", 3)).draft_layers == 1
    assert resolved(speculative_config=SpeculativeConfig("ngram", 3)).draft_layers == 0


def test_captured_batch_sizes() -> None:
    """1, 2, 4, then every eighth up to 256 and every sixteenth (before 0.11.1: eighth) to 512."""

    def count(**args: object) -> int:
        request = asked(**args)  # type: ignore[arg-type]
        return capture_sizes(request, 8192, 1024)

    assert count() == 3 + 31 + 17
    assert count(version="0.11.0") == 3 + 31 + 33
    assert count(enforce_eager=True) == 0
    assert count(card="b200") == 3 + 31 + 49
    assert count(max_cudagraph_capture_size=8) == 4


@pytest.mark.parametrize(
    ("model", "version", "refused"),
    [
        ("llama-3.3-70b-fp8-modelopt", "0.32.0", True),
        ("qwen3-32b-fp8", "0.32.0", True),
        ("llama-3.3-70b-fp8-ct", "0.23.0", True),
        ("llama-3.3-70b-fp8-ct", "0.24.0", False),
        ("llama-3.3-70b-awq", "0.32.0", False),
        ("llama-3.3-70b", "0.32.0", False),
    ],
)
def test_e5m2_is_refused_beside_a_checkpoints_own_scales(
    model: str, version: str, *, refused: bool
) -> None:
    """FP8 E5M2 and a checkpoint's E4M3 scales exclude each other, in vLLM's own words."""
    start = asked(model, version=version, layout=Layout(2), kv_cache_dtype="fp8_e5m2")
    settled = resolve_engine_args(start)
    if not refused:
        assert cache_shape(start, settled).blocks_per_request > 0
        return
    with pytest.raises(Refusal) as caught:
        cache_shape(start, settled)
    assert caught.value.reason.code == "kv_dtype_not_supported"
    assert caught.value.reason.vllm_error == (
        "fp8_e5m2 kv-cache is not supported with fp8 checkpoints."
    )


def test_an_older_runner_schedules_no_batch_beyond_its_stages() -> None:
    """Asked for by hand, async scheduling of V1 keeps one batch a stage; V2 one more."""
    pipeline = Layout(pipeline_parallel_size=3)
    found = {
        runner: resolve_engine_args(
            replace(
                asked("gpt-oss-20b", layout=pipeline, async_scheduling=True),
                release=replace(releases().newest, default_model_runner=runner),
            )
        ).max_in_flight_tokens
        for runner in ("V1", "V2")
    }
    assert found == {"V1": 3 * 8192, "V2": 4 * 8192}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            {"model": "gemma-3-27b-text", "version": "0.9.2", "dtype": "float16"},
            "The model type 'gemma3_text' does not support float16.",
        ),
        (
            {
                "model": "qwen3-next-80b-a3b",
                "version": "0.32.0",
                "enable_prefix_caching": True,
                "enable_chunked_prefill": False,
                "max_model_len": 4096,
            },
            "Chunked prefill is required for mamba cache mode 'align'.",
        ),
    ],
)
def test_what_a_model_cannot_do_is_refused_in_vllms_words(
    args: dict[str, object], text: str
) -> None:
    """float16 where a model overflows, whole prompts where states lie at block ends."""
    with pytest.raises(Refusal) as refused:
        resolved(**args)
    assert text in refused.value.reason.vllm_error


def test_a_vocabulary_that_does_not_divide_is_refused() -> None:
    """4,096 rows over three cards: the embedding is the first layer that fails."""
    model = dense(num_attention_heads=24, num_key_value_heads=24)
    with pytest.raises(Refusal) as refused:
        resolve_engine_args(request(model=model, layout=Layout(tensor_parallel_size=3)))
    assert refused.value.reason.vllm_error == "4096 is not divisible by 3"


def test_query_heads_are_divided_over_the_ranks_that_share_a_context() -> None:
    """Three query heads a KV head do not divide by two ranks."""
    model = dense(num_attention_heads=6, num_key_value_heads=2, vocab_size=6 * 64)
    layout = Layout(tensor_parallel_size=6, decode_context_parallel_size=2)
    with pytest.raises(Refusal) as refused:
        resolve_engine_args(request(model=model, layout=layout, release=shipped("0.32.0")))
    reason = refused.value.reason
    assert reason.code == "dcp_not_supported"
    assert dict(reason.numbers)["num_q_per_kv"] == 3


def test_a_declared_scheme_is_e4m3_and_excludes_e5m2() -> None:
    """From 0.24.0 a compressed-tensors checkpoint is refused if it declares a KV scheme."""
    start = asked("llama-3.3-70b-fp8-ct", version="0.24.0", kv_cache_dtype="fp8_e5m2")
    declared = replace(start, checkpoint=replace(start.checkpoint, kv_cache_scheme="fp8_e4m3"))
    with pytest.raises(Refusal) as caught:
        cache_shape(declared, resolve_engine_args(declared))
    assert caught.value.reason.vllm_error == (
        "fp8_e5m2 kv-cache is not supported with fp8 checkpoints."
    )
