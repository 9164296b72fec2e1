"""The blocks decoders are built from: attention with grouped heads, MLP, experts, ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from app.catalog.hf_tensors.layer import LayerTensors
from app.core.model_spec import EVERY_STAGE, FIRST_STAGE, LAST_STAGE, Sharding, TensorGroup

QkNorm = Literal["none", "head", "full"]
# Which pipeline stages vLLM gives embedding and head to, beyond the first and the last.
EndsOn = Literal["ends", "embed_everywhere", "everywhere"]
MLP_NAMES = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention. `head_dim_v` is the value's head size, `output_gate` doubles q.

    `qk_norm`: one norm of a head's size for q and k (`head`), or of all heads' (`full`).
    `keys`: False where the layer uses another layer's keys and values. `value_is_key`: the files
    hold no v_proj, vLLM fills it with k_proj's weights.
    """

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: QkNorm = "none"
    output_gate: bool = False
    sinks: str = ""
    fused_qkv: bool = False
    value_is_key: bool = False
    name: str = "self_attn"


def attention(layer: LayerTensors, shape: Attention) -> None:
    """Add q, k, v, o and what belongs to them."""
    hidden, heads, kv_heads = shape.hidden_size, shape.heads, shape.kv_heads
    name = shape.name
    q_size = heads * shape.head_dim * (2 if shape.output_gate else 1)
    q, k, v = ("qkv_proj",) * 3 if shape.fused_qkv else ("q_proj", "k_proj", "v_proj")
    bias = shape.qkv_bias
    layer.linear(f"{name}.{q}", "attn", (q_size, hidden), "column", units=heads, bias=bias)
    key = (kv_heads * shape.head_dim, hidden)
    layer.linear(f"{name}.{k}", "attn", key, "kv_heads", units=kv_heads, bias=bias)
    value = (kv_heads * shape.head_dim_v, hidden)
    target = LayerTensors(layer.layer, "runtime", layer.prefix) if shape.value_is_key else layer
    target.linear(f"{name}.{v}", "attn", value, "kv_heads", units=kv_heads, bias=bias)
    if target is not layer:
        layer.groups += target.groups
    out = (hidden, heads * shape.head_dim_v)
    layer.linear(f"{name}.o_proj", "attn", out, "row", units=heads, bias=shape.o_bias)
    if shape.sinks:
        layer.vector(f"{name}.{shape.sinks}", "attn", heads, "column", units=heads)
    _qk_norm(layer, shape)


def _qk_norm(layer: LayerTensors, shape: Attention) -> None:
    q_norm, k_norm = f"{shape.name}.q_norm", f"{shape.name}.k_norm"
    if shape.qk_norm == "head":
        layer.norms(shape.head_dim, q_norm, k_norm)
    elif shape.qk_norm == "full":
        q_size, k_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        layer.vector(q_norm, "norm", q_size, "column", units=shape.heads)
        layer.vector(k_norm, "norm", k_size, "kv_heads", units=shape.kv_heads)


@dataclass(frozen=True, slots=True)
class Mlp:
    """Dense feed-forward block: three matrices when gated, two otherwise."""

    hidden_size: int
    intermediate_size: int
    gated: bool = True
    bias: bool = False
    names: tuple[str, str, str] = MLP_NAMES
    column: Sharding = "column"
    row: Sharding = "row"


def mlp(layer: LayerTensors, name: str, module: str, shape: Mlp) -> None:
    """Add gate, up and down projection under `name`."""
    gate, up, down = shape.names
    size = (shape.intermediate_size, shape.hidden_size)
    for path in (gate, up) if shape.gated else (up,):
        layer.linear(f"{name}.{path}", module, size, shape.column, bias=shape.bias)
    layer.linear(f"{name}.{down}", module, size[::-1], shape.row, bias=shape.bias)


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts. `shared_size` is the width of the shared expert (0: none).

    `latent_size` is set where experts work in a smaller space (Nemotron-3 Super). `correction` is
    the name of the router's FP32 score correction, empty where there is none. `sequence_parallel`:
    vLLM can run the family's experts sequence parallel, with the shared expert whole on every rank.
    `least_share` and the router's dtypes as in TensorGroup.
    """

    hidden_size: int
    count: int
    intermediate_size: int
    shared_size: int = 0
    shared_gate: bool = False
    correction: str = ""
    expert_bias: bool = False
    gated: bool = True
    latent_size: int = 0
    router: str = "gate"
    router_bias: bool = False
    router_loaded_dtype: str | None = None
    router_fallback_dtype: str | None = None
    shared: str = "shared_experts"
    names: tuple[str, str, str] = MLP_NAMES
    sequence_parallel: bool = False
    least_share: int = 0


def experts(layer: LayerTensors, name: str, shape: Experts) -> None:
    """Add router, experts and shared expert under `name`."""
    hidden = shape.hidden_size
    layer.plain(
        f"{name}.{shape.router}",
        "router",
        (shape.count, hidden),
        bias=shape.router_bias,
        loaded_dtype=shape.router_loaded_dtype,
        fallback_dtype=shape.router_fallback_dtype,
    )
    if shape.correction:
        layer.vector(f"{name}.{shape.correction}", "router", shape.count, dtype="float32")
    _expert_matrices(layer, f"{name}.experts", shape)
    if shape.shared_size:
        wide = Mlp(hidden, shape.shared_size, shape.gated, names=shape.names)
        if shape.sequence_parallel:
            wide = replace(wide, column="shared_column", row="shared_row")
        mlp(layer, f"{name}.{shape.shared}", "shared", wide)
    if shape.shared_gate:
        layer.plain(f"{name}.shared_expert_gate", "router", (1, hidden))


def _expert_matrices(layer: LayerTensors, name: str, shape: Experts) -> None:
    gate, up, down = shape.names
    size = (shape.intermediate_size, shape.latent_size or shape.hidden_size)
    matrix = partial(
        layer.linear,
        bias=shape.expert_bias,
        count=shape.count,
        least_share=shape.least_share,
    )
    for path in (gate, up) if shape.gated else (up,):
        matrix(f"{name}.{path}", "expert", size, "expert_column")
    matrix(f"{name}.{down}", "expert", size[::-1], "expert_row")


@dataclass(frozen=True, slots=True)
class Ends:
    """Embedding, final norm and head."""

    vocab_size: int
    hidden_size: int
    tied: bool
    on: EndsOn = "ends"
    norm: str = "model.norm"
    embed: str = "model.embed_tokens"
    head_bias: bool = False


def ends(shape: Ends) -> list[TensorGroup]:
    """Add the embedding before the first layer; final norm and, unless tied, the head after."""
    size = (shape.vocab_size, shape.hidden_size)
    first = LayerTensors(FIRST_STAGE if shape.on == "ends" else EVERY_STAGE)
    first.plain(shape.embed, "embed", size, "vocab")
    last = LayerTensors(EVERY_STAGE if shape.on == "everywhere" else LAST_STAGE)
    last.norms(shape.hidden_size, shape.norm)
    if not shape.tied:
        last.linear("lm_head", "lm_head", size, "vocab", bias=shape.head_bias)
    return first.groups + last.groups
