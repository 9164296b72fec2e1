"""The blocks decoders are built from: attention with grouped heads, MLP, experts, ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.catalog.hf_tensors.layer import LayerTensors
from app.core.model_spec import FIRST_STAGE, LAST_STAGE, Sharding, TensorGroup

QkNorm = Literal["none", "head", "full"]


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention. `head_dim_v` is the value's head size, `output_gate` doubles q.

    `qk_norm`: one norm of a head's size for q and k (`head`), or of all heads' (`full`).
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
    sinks: bool = False
    fused_qkv: bool = False
    value_is_key: bool = False
    name: str = "self_attn"


def attention(layer: LayerTensors, shape: Attention) -> None:
    """Add q, k, v, o and what belongs to them."""
    hidden, bias = shape.hidden_size, shape.qkv_bias
    q_size = shape.heads * shape.head_dim * (2 if shape.output_gate else 1)
    rows = [("q_proj", q_size, "column", shape.heads)]
    rows += [("k_proj", shape.kv_heads * shape.head_dim, "kv_heads", shape.kv_heads)]
    if not shape.value_is_key:
        rows += [("v_proj", shape.kv_heads * shape.head_dim_v, "kv_heads", shape.kv_heads)]
    for name, size, sharding, units in rows:
        path = f"{shape.name}.{'qkv_proj' if shape.fused_qkv else name}"
        split: Sharding = "column" if sharding == "column" else "kv_heads"
        layer.linear(path, "attn", (size, hidden), split, units=units, bias=bias)
    out = (hidden, shape.heads * shape.head_dim_v)
    layer.linear(f"{shape.name}.o_proj", "attn", out, "row", units=shape.heads, bias=shape.o_bias)
    if shape.sinks:
        layer.vector(f"{shape.name}.sinks", "attn", shape.heads, "column", units=shape.heads)
    if shape.qk_norm == "head":
        layer.norms(shape.head_dim, f"{shape.name}.q_norm", f"{shape.name}.k_norm")
    elif shape.qk_norm == "full":
        layer.norms(shape.heads * shape.head_dim, f"{shape.name}.q_norm")
        layer.norms(shape.kv_heads * shape.head_dim, f"{shape.name}.k_norm")


@dataclass(frozen=True, slots=True)
class Mlp:
    """Dense feed-forward block: three matrices when gated, two otherwise."""

    hidden_size: int
    intermediate_size: int
    gated: bool = True
    bias: bool = False
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")


def mlp(layer: LayerTensors, name: str, module: str, shape: Mlp) -> None:
    """Add gate, up and down projection under `name`."""
    gate, up, down = shape.names
    size = (shape.intermediate_size, shape.hidden_size)
    for path in (gate, up) if shape.gated else (up,):
        layer.linear(f"{name}.{path}", module, size, "column", bias=shape.bias)
    layer.linear(f"{name}.{down}", module, size[::-1], "row", bias=shape.bias)


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts. `shared_size` is the width of the shared expert (0: none).

    `latent_size` is set where experts work in a smaller space (Nemotron-3 Super).
    """

    hidden_size: int
    count: int
    intermediate_size: int
    shared_size: int = 0
    shared_gate: bool = False
    router_bias: str = ""
    expert_bias: bool = False
    gated: bool = True
    latent_size: int = 0
    router: str = "gate"
    shared: str = "shared_experts"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    router_dtype: str | None = None
    router_has_bias: bool = False
    shared_bias: bool = False


def experts(layer: LayerTensors, name: str, shape: Experts) -> None:
    """Add router, experts and shared expert under `name`."""
    hidden = shape.hidden_size
    layer.linear(
        f"{name}.{shape.router}",
        "router",
        (shape.count, hidden),
        quantizable=False,
        bias=shape.router_has_bias,
        dtype=shape.router_dtype,
    )
    if shape.router_bias:
        layer.vector(f"{name}.{shape.router_bias}", "router", shape.count, dtype="float32")
    gate, up, down = shape.names
    size = (shape.intermediate_size, shape.latent_size or hidden)
    for path in (gate, up) if shape.gated else (up,):
        layer.linear(
            f"{name}.experts.{path}",
            "expert",
            size,
            "expert_column",
            bias=shape.expert_bias,
            count=shape.count,
        )
    layer.linear(
        f"{name}.experts.{down}",
        "expert",
        size[::-1],
        "expert_row",
        bias=shape.expert_bias,
        count=shape.count,
    )
    if shape.shared_size:
        wide = Mlp(hidden, shape.shared_size, shape.gated, shape.shared_bias, shape.names)
        mlp(layer, f"{name}.{shape.shared}", "shared", wide)
    if shape.shared_gate:
        layer.linear(f"{name}.shared_expert_gate", "router", (1, hidden), quantizable=False)


def ends(
    vocab_size: int, hidden_size: int, *, tied: bool, norm: str = "norm", head_bias: bool = False
) -> list[TensorGroup]:
    """Embedding before the first layer; final norm and, unless tied, the head after the last."""
    first = LayerTensors(FIRST_STAGE)
    first.linear("embed_tokens", "embed", (vocab_size, hidden_size), "vocab", quantizable=False)
    last = LayerTensors(LAST_STAGE)
    last.norms(hidden_size, norm)
    if not tied:
        last.linear("lm_head", "lm_head", (vocab_size, hidden_size), "vocab", bias=head_bias)
    return first.groups + last.groups
