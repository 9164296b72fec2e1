"""What is wrong with a running server or could be better: each with the flag, and its effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from app.core.model_spec import AttentionSpec
from app.core.reasons import Number
from app.core.request import SizingRequest
from app.core.result import Cache, SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.core.ways_out import LENGTHS
from app.readings.calibrate import counts_graphs
from app.readings.observation import Observation

Severity = Literal["no", "tight", "info"]
Change = Mapping[str, Number | bool | None]

HELPFUL: Final = 1.02
SIXTEEN_BIT: Final = frozenset({"auto", "bfloat16", "float16", "half"})
HIGH_UTILIZATION: Final = 0.95
# Fewer requests of full length than this, and the declared context is what holds the server back.
FEW_REQUESTS: Final = 2.0
ENOUGH_REQUESTS: Final = 4.0
SHORTEST_CONTEXT: Final = 2048
WASTED_GRAPHS_GIB: Final = 0.2
UTILIZATION_LIMIT: Final = 0.98
FOREIGN_GIB: Final = 2.0
UNUSED_SHARE: Final = 1.02
FULL_PERCENT: Final = 95.0


@dataclass(frozen=True, slots=True)
class Effect:
    """Figures of one engine before and after a change."""

    tokens_before: int
    tokens_after: int
    concurrency_before: float
    concurrency_after: float

    @property
    def gain(self) -> float:
        """Tokens after over tokens before."""
        return self.tokens_after / self.tokens_before if self.tokens_before else 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Codes: `context_far_above`, `max_num_seqs_above_cache`, `max_num_seqs_below_cache`,
    `preemptions`, `cache_was_full`, `kv_cache_dtype_16_bit`, `utilization_default`,
    `utilization_low`, `graph_estimate_too_high`, `memory_left_unused`, `eager`,
    `hybrid_manager_disabled`, `kv_heads_replicated`, `blocks_overridden`, `padding_layers`,
    `mamba_page_padding`, `memory_in_use_at_start`.
    change  vLLM's flags with the value to set; None takes one away. Empty: nothing to set
    """

    code: str
    severity: Severity
    numbers: Mapping[str, Number] = field(default_factory=dict)
    change: Change = field(default_factory=dict)
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class _Server:
    """A calibrated server with what it printed; it starts."""

    start: Observation
    request: SizingRequest
    result: SizingResult
    cache: Cache
    max_num_seqs: int

    def with_args(self, **flags: Number | bool | None) -> SizingRequest:
        args = self.request.engine_args
        for flag, value in flags.items():
            args = args.with_flag(flag, value)
        return replace(self.request, engine_args=args)

    def finding(
        self, code: str, severity: Severity, numbers: Mapping[str, Number], **change: Number | bool
    ) -> Finding:
        """Build a finding with the effect of its change; without one where vLLM would refuse."""
        return self.sized(code, severity, numbers, change, self.with_args(**change))

    def sized(
        self, code: str, severity: Severity, numbers: Mapping[str, Number], change: Change,
        request: SizingRequest,
    ) -> Finding:  # fmt: skip
        effect = self.effect(request) if change else None
        return Finding(code, severity, numbers, change if effect else {}, effect)

    def effect(self, request: SizingRequest) -> Effect | None:
        after = size(request).cache
        if after is None:
            return None
        return Effect(
            self.cache.kv_cache_size_tokens, after.kv_cache_size_tokens,
            self.cache.max_concurrency, after.max_concurrency,
        )  # fmt: skip


def find(start: Observation, request: SizingRequest) -> tuple[Finding, ...]:
    """Find what could be better on a server that starts; `request` is calibrated.

    Empty where the sizing gives no cache: what then helps are ways out.
    """
    result = size(request)
    if result.cache is None or result.resolved is None:
        return ()
    server = _Server(start, request, result, result.cache, result.resolved.max_num_seqs)
    found = (
        *_load(server), *_lengths(server), *_dtype(server), *_utilization(server),
        *_graphs(server), *_layout(server), *_layers(server), *_others(server),
    )  # fmt: skip
    order: Mapping[Severity, int] = {"no": 0, "tight": 1, "info": 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def most_helpful(findings: Iterable[Finding], count: int = 3) -> tuple[Finding, ...]:
    """Return the changes that help most: by tokens gained, a shorter context after all others."""
    helping = [
        each for each in findings
        if each.effect is not None
        and (each.effect.gain > HELPFUL or each.code == "context_far_above")
    ]  # fmt: skip
    helping.sort(key=lambda each: -(each.effect.gain if each.effect else 0.0))
    helping.sort(key=lambda each: each.code == "context_far_above")
    return tuple(helping[:count])


def _load(server: _Server) -> Iterator[Finding]:
    observed, cache = server.start.observed, server.cache
    fitting = max(1, int(cache.max_concurrency))
    if observed.num_preemptions:
        numbers = {"num_preemptions": observed.num_preemptions, "requests": fitting}
        if fitting < server.max_num_seqs:
            yield server.finding("preemptions", "tight", numbers, max_num_seqs=fitting)
        else:
            yield Finding("preemptions", "tight", numbers)
    elif (observed.peak_kv_cache_usage_percent or 0.0) >= FULL_PERCENT:
        usage = observed.peak_kv_cache_usage_percent or 0.0
        waiting = observed.peak_num_requests_waiting or 0
        yield Finding("cache_was_full", "tight", {"usage_percent": usage, "waiting": waiting})
    places: Mapping[str, Number] = {
        "max_num_seqs": server.max_num_seqs, "max_concurrency": cache.max_concurrency
    }  # fmt: skip
    if fitting > server.max_num_seqs:
        yield server.finding("max_num_seqs_below_cache", "info", places, max_num_seqs=fitting)
    elif fitting < server.max_num_seqs and not observed.num_preemptions:
        enough = max(8, 1 << fitting.bit_length())
        if enough < server.max_num_seqs:
            found = server.finding("max_num_seqs_above_cache", "info", places, max_num_seqs=enough)
            if found.effect is None or found.effect.gain > 1:
                yield found


def _lengths(server: _Server) -> Iterator[Finding]:
    cache = server.cache
    if cache.max_concurrency >= FEW_REQUESTS:
        return
    numbers = {"max_model_len": cache.max_model_len, "max_concurrency": cache.max_concurrency}
    for length in LENGTHS:
        if not SHORTEST_CONTEXT <= length < cache.max_model_len:
            continue
        found = server.finding("context_far_above", "tight", numbers, max_model_len=length)
        if found.effect is not None and found.effect.concurrency_after >= ENOUGH_REQUESTS:
            yield found
            return


def _dtype(server: _Server) -> Iterator[Finding]:
    resolved = server.result.resolved
    if resolved is None or resolved.cache_dtype not in SIXTEEN_BIT:
        return
    found = server.finding("kv_cache_dtype_16_bit", "info", {}, kv_cache_dtype="fp8")
    if found.effect is not None and found.effect.gain > HELPFUL:
        yield found


def _utilization(server: _Server) -> Iterator[Finding]:
    resolved, observed = server.result.resolved, server.start.observed
    if resolved is None or resolved.kv_cache_memory_bytes is not None:
        return
    now = resolved.gpu_memory_utilization
    default = server.request.release.gpu_memory_utilization
    numbers = {"gpu_memory_utilization": now, "default": default}
    free, total = observed.free_memory_gib, observed.total_memory_gib
    is_free = free is None or total is None or free >= HIGH_UTILIZATION * total
    if now < HIGH_UTILIZATION and is_free and not server.request.gpu.integrated_memory:
        code = "utilization_low" if now < default else "utilization_default"
        if now <= default:
            found = server.finding(code, "info", numbers, gpu_memory_utilization=HIGH_UTILIZATION)
            if found.effect is not None and found.effect.gain > 1:
                yield found
    yield from _unused(server)


def _unused(server: _Server) -> Iterator[Finding]:
    """vLLM's own figure for all of the card."""
    most = server.start.observed.max_kv_cache_memory_bytes
    available = server.result.available_kv_cache_memory
    if most is None or available is None or most <= UNUSED_SHARE * available.likely:
        return
    numbers = {"unused_bytes": int(most - available.likely)}
    found = server.finding("memory_left_unused", "info", numbers, kv_cache_memory_bytes=most)
    if found.effect is not None:
        yield found


def _graphs(server: _Server) -> Iterator[Finding]:
    observed, resolved = server.start.observed, server.result.resolved
    estimate, actual = observed.cudagraph_estimate_gib, observed.cudagraph_gib
    total = server.result.total_memory_bytes
    if resolved is None:
        return
    if resolved.enforce_eager:
        yield server.finding("eager", "info", {}, enforce_eager=False)
        return
    if (
        not counts_graphs(observed, server.result)
        or estimate is None
        or actual is None
        or not total
    ):
        return
    wasted = estimate - max(actual, 0.0)
    if wasted < WASTED_GRAPHS_GIB:
        return
    share = resolved.gpu_memory_utilization + wasted * GIB / total
    numbers = {"estimate_gib": estimate, "actual_gib": actual, "wasted_gib": wasted}
    utilization = min(UTILIZATION_LIMIT, int(share * 1000) / 1000)
    yield server.finding(
        "graph_estimate_too_high", "info", numbers, gpu_memory_utilization=utilization
    )


def _layout(server: _Server) -> Iterator[Finding]:
    """KV heads that several cards hold alike."""
    layout = server.request.layout
    width = layout.tensor_parallel_size
    heads = [
        layer.cache.num_kv_heads
        for layer in server.request.model.layers
        if isinstance(layer.cache, AttentionSpec)
    ]
    fewest = min(heads, default=1)
    if width <= fewest or layout.decode_context_parallel_size > 1:
        return
    numbers = {"num_kv_heads": fewest, "tensor_parallel_size": width}
    parts = width // fewest
    changed = replace(layout, decode_context_parallel_size=parts)
    change = {"decode_context_parallel_size": parts}
    request = replace(server.request, layout=changed)
    yield server.sized("kv_heads_replicated", "info", numbers, change, request)


def _layers(server: _Server) -> Iterator[Finding]:
    observed, args = server.start.observed, server.request.engine_args
    if args.disable_hybrid_kv_cache_manager:
        found = server.finding(
            "hybrid_manager_disabled", "tight", {}, disable_hybrid_kv_cache_manager=False
        )
        if found.effect is not None and found.effect.gain > HELPFUL:
            yield found
    if observed.padding_layers:
        waste = observed.padding_waste_percent or 0.0
        numbers = {"padding_layers": observed.padding_layers, "waste_percent": waste}
        yield Finding("padding_layers", "info", numbers)
    if (observed.mamba_page_padding_percent or 0.0) >= 1:
        percent = observed.mamba_page_padding_percent or 0.0
        yield Finding("mamba_page_padding", "info", {"percent": percent})


def _others(server: _Server) -> Iterator[Finding]:
    observed = server.start.observed
    if server.request.engine_args.num_gpu_blocks_override is not None:
        numbers = {"num_gpu_blocks": server.cache.num_gpu_blocks}
        request = server.with_args(num_gpu_blocks_override=None)
        change: Change = {"num_gpu_blocks_override": None}
        yield server.sized("blocks_overridden", "tight", numbers, change, request)
    total, free = observed.total_memory_gib, observed.free_memory_gib
    if total is None or free is None or server.request.gpu.integrated_memory:
        return
    if server.request.layout.cards_per_engine == 1 and total - free > FOREIGN_GIB:
        used = {"used_gib": total - free, "total_gib": total}
        yield Finding("memory_in_use_at_start", "tight", used)
