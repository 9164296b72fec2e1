"""What must hold for the cache of any model, card, release and layout."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.engine import EngineArgs
from app.core.engine_defaults import resolve_engine_args
from app.core.kv_cache import cache_for, cache_shape
from app.core.layout import Layout
from app.core.model_spec import MlaSpec, PackedSpec
from app.core.reasons import Refusal
from app.core.request import SizingRequest
from app.core.result import Cache
from app.core.units import GIB
from tests.core.oracle import gpus, models, releases

CARDS = ("h100-80gb-hbm3", "b200", "rtx-pro-6000-server", "l40s", "a100-sxm4-80gb", "gb10")
LATENT = ("deepseek-v3", "deepseek-v3.2", "kimi-k2")


@dataclass(frozen=True)
class Case:
    """A request and the memory that each card has for the cache, bytes."""

    request: SizingRequest
    available_bytes: int

    def __repr__(self) -> str:
        """Return what tells cases apart: a whole model is too long to be read."""
        asked = self.request
        named = asked.checkpoint.hf_id, asked.gpu.slug, asked.release.version
        return f"Case({named}, {asked.layout}, {asked.engine_args}, {self.available_bytes})"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw any model on any card in any release."""
    name = draw(st.sampled_from(sorted(models())))
    model, checkpoint = models()[name]
    layout = Layout(
        tensor_parallel_size=draw(st.sampled_from((1, 2, 4, 8))),
        pipeline_parallel_size=draw(st.sampled_from((1, 1, 2, 3))),
    )
    args = EngineArgs(
        max_model_len=draw(st.integers(1, 40_960)),
        kv_cache_dtype=draw(st.sampled_from(("auto", "auto", "fp8"))),
        max_num_batched_tokens=draw(st.sampled_from((None, 1024, 5000))),
        max_num_seqs=64,
        enable_prefix_caching=draw(st.sampled_from((None, True, False))),
    )
    request = SizingRequest(
        model=model,
        checkpoint=checkpoint,
        gpu=gpus()[draw(st.sampled_from(CARDS))],
        release=draw(st.sampled_from(releases().rows)),
        layout=layout,
        engine_args=args,
    )
    return Case(request, draw(st.integers(GIB // 8, 100 * GIB)))


def cache_of(case: Case) -> Cache | None:
    """Work the cache out; None where vLLM would refuse."""
    try:
        resolved = resolve_engine_args(case.request)
        stages = case.request.layout.pipeline_parallel_size
        return cache_for(case.request, resolved, [case.available_bytes] * stages)
    except Refusal:
        return None


def with_args(case: Case, **changes: int) -> Case:
    """Copy a case with other engine arguments."""
    args = replace(case.request.engine_args, **changes)  # type: ignore[arg-type]
    return replace(case, request=replace(case.request, engine_args=args))


@given(cases(), st.integers(0, 90_000))
def test_a_longer_context_never_fits_more_often(case: Case, longer: int) -> None:
    """A longer context never gives more concurrent requests, in any release."""
    short = cache_of(case)
    args = case.request.engine_args
    long = cache_of(with_args(case, max_model_len=(args.max_model_len or 1) + longer))
    if short is not None and long is not None:
        assert long.max_concurrency <= short.max_concurrency


@given(cases(), st.integers(0, 50 * GIB))
def test_more_memory_never_gives_fewer_blocks(case: Case, more: int) -> None:
    """More memory never gives fewer blocks, tokens or requests."""
    small = cache_of(case)
    large = cache_of(replace(case, available_bytes=case.available_bytes + more))
    if small is not None:
        assert large is not None
        assert large.num_gpu_blocks >= small.num_gpu_blocks
        assert large.kv_cache_size_tokens >= small.kv_cache_size_tokens
        assert large.max_concurrency >= small.max_concurrency


@given(cases())
def test_figures_multiply_out_as_printed(case: Case) -> None:
    """Tokens, concurrency, blocks and bytes of one answer belong together."""
    cache = cache_of(case)
    if cache is None:
        return
    rule = case.request.release.tokens_rule
    if case.request.layout.pipeline_parallel_size == 1:
        assert cache.num_gpu_blocks == case.available_bytes // cache.bytes_per_block
    if rule != "slots":
        assert cache.max_concurrency == cache.num_gpu_blocks / cache.blocks_per_request
    if rule == "concurrency":
        assert cache.kv_cache_size_tokens == int(cache.max_concurrency * cache.max_model_len)
    packed = any(isinstance(layer.cache, PackedSpec) for layer in case.request.model.layers)
    if not (packed and case.request.release.concurrency_counts_bytes):
        assert cache.blocks_per_request == sum(group.blocks_per_request for group in cache.groups)
    assert cache.block_size == min(group.block_size for group in cache.groups)


@given(st.sampled_from(LATENT), st.sampled_from(CARDS), st.sampled_from(range(4)))
def test_tensor_parallelism_never_changes_an_mla_page(name: str, card: str, power: int) -> None:
    """Every rank keeps the whole latent vector: pages are the same whatever the ranks."""
    pages = []
    for tp in (1, 2**power):
        model, checkpoint = models()[name]
        request = SizingRequest(
            model, checkpoint, gpus()[card], releases().newest, Layout(tensor_parallel_size=tp)
        )
        try:
            shape = cache_shape(request, resolve_engine_args(request))
        except Refusal as refusal:
            assert refusal.reason.code == "kv_dtype_not_supported"  # noqa: PT017
            return
        assert any(isinstance(layer.cache, MlaSpec) for layer in model.layers)
        pages.append([group.page_size_bytes for group in shape.groups])
    assert pages[0] == pages[1]
