"""What a start allocates for a moment: the peak of its profile run, from the model's shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.core.layout import Layout
from app.core.model_spec import MlaSpec, ModelSpec, StateSpec

ACTIVATION_BYTES = 2
SPARSE_MLA_ROW_BYTES = 576 * ACTIVATION_BYTES
LONG_SPARSE_CONTEXT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Widths:
    """Elements that one token of the profile run needs at the widest point of each kind of layer.

    `replicated` counts hidden states, the same on every tensor-parallel rank; the others are
    divided by `tensor_parallel_size`.
    """

    replicated: int
    attention: int
    linear_attention: int
    dense_mlp: int


@lru_cache(maxsize=1024)
def widths(model: ModelSpec) -> Widths:
    """Widest intermediate tensors of a model, in elements a token.

    A compiled dense layer holds the residual and the normed input (2h) beside gate, up and their
    product (3I), or queries with keys and values twice. Source: the shapes of
    vllm/model_executor/models; checked against logged peaks (data/measurements).
    """
    states = [layer.cache for layer in model.layers if isinstance(layer.cache, StateSpec)]
    latent = any(isinstance(layer.cache, MlaSpec) for layer in model.layers)
    heads, head_dim = model.num_attention_heads, model.head_dim
    if latent:
        head_dim = max(head_dim, model.qk_nope_head_dim + model.v_head_dim)
    key_value = heads if latent else model.num_key_value_heads
    modules = {group.module for group in model.tensors}
    inner = model.intermediate_size if "mlp" in modules or not model.num_experts else 0
    if "shared" in modules:
        inner = max(inner, model.moe_intermediate_size)
    return Widths(
        replicated=2 * model.hidden_size,
        attention=2 * heads * head_dim + 2 * key_value * head_dim,
        linear_attention=max(
            (
                2
                * (2 * s.num_key_heads * s.key_head_dim + 2 * s.num_value_heads * s.value_head_dim)
                for s in states
            ),
            default=0,
        ),
        dense_mlp=3 * inner,
    )


def forward_bytes(model: ModelSpec, tensor_parallel_size: int, num_tokens: int) -> int:
    """Peak of one compiled layer over `num_tokens` tokens of the profile run, bytes a rank."""
    width = widths(model)
    sharded = max(width.attention, width.linear_attention, width.dense_mlp)
    return ACTIVATION_BYTES * num_tokens * (width.replicated + sharded // tensor_parallel_size)


def expert_workspace_bytes(model: ModelSpec, layout: Layout, num_tokens: int) -> int:
    """Workspace of the fused experts over `num_tokens` tokens, bytes a rank; 0 for dense models.

    Two buffers of tokens x experts per token: the larger of intermediate and hidden size, and the
    larger of gate-and-up and hidden size. With expert parallelism every expert keeps its full
    width, else all cards of all data-parallel engines share it; the tokens of all engines meet.
    Source: vllm/model_executor/layers/fused_moe/modular_kernel.py (workspace shapes of the Triton
    kernel).
    """
    if not model.num_experts:
        return 0
    cards = layout.tensor_parallel_size * layout.data_parallel_size
    inner = model.moe_intermediate_size // (1 if layout.enable_expert_parallel else cards)
    tokens = num_tokens * layout.data_parallel_size
    hidden = model.hidden_size
    columns = max(inner, hidden) + max(2 * inner, hidden)
    return ACTIVATION_BYTES * tokens * model.num_experts_per_tok * columns


def sparse_workspace_bytes(model: ModelSpec, max_model_len: int, rows: tuple[int, int]) -> int:
    """Prefill workspace of sparse MLA (DeepSeek sparse attention), bytes a rank; else 0.

    `rows` x max_model_len rows of 576 bf16 values; the second factor holds above 256k tokens.
    Source: vllm/v1/attention/backends/mla/flashmla_sparse.py get_prefill_workspace_size.
    """
    if not uses_sparse_mla(model):
        return 0
    factor = rows[max_model_len > LONG_SPARSE_CONTEXT]
    return factor * max_model_len * SPARSE_MLA_ROW_BYTES


@lru_cache(maxsize=1024)
def uses_sparse_mla(model: ModelSpec) -> bool:
    """Whether any layer attends sparsely over a latent cache (DeepSeek sparse attention)."""
    return any(isinstance(layer.cache, MlaSpec) and layer.cache.sparse for layer in model.layers)


def embedding_bytes(model: ModelSpec, tensor_parallel_size: int) -> int:
    """One rank's share of the embedding table at two bytes a value."""
    return ACTIVATION_BYTES * model.vocab_size * model.hidden_size // tensor_parallel_size
