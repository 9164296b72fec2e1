"""What a start allocates for a moment follows from the model's shapes."""

from app.core.activations import (
    embedding_bytes,
    expert_workspace_bytes,
    forward_bytes,
    sparse_workspace_bytes,
    uses_sparse_mla,
    widths,
)
from app.core.layout import Layout
from app.core.model_spec import LayerSpec, MlaSpec, ModelSpec, StateSpec, TensorGroup
from tests.core.memory_case import dense


def latent(*, sparse: bool) -> ModelSpec:
    """Return a model with a latent cache."""
    cache = MlaSpec(512, 64, index_head_dim=128 if sparse else None, sparse=sparse)
    return dense(layers=(LayerSpec(cache),), qk_nope_head_dim=128, v_head_dim=128, head_dim=0)


def experts() -> ModelSpec:
    """Return a model whose layers have experts and no dense MLP."""
    return dense(
        tensors=(TensorGroup("mlp.experts.down_proj", "expert", 0, 1024, 256),),
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=512,
    )


def test_the_widest_point_of_a_dense_layer_is_gate_up_and_their_product() -> None:
    """Two hidden states stay whole, three intermediates are split; two bytes a value."""
    assert widths(dense()).dense_mlp == 3 * 4096
    assert forward_bytes(dense(), 1, 100) == 2 * 100 * (2 * 1024 + 3 * 4096)
    assert forward_bytes(dense(), 2, 100) == 2 * 100 * (2 * 1024 + 3 * 4096 // 2)


def test_attention_can_be_the_widest_point() -> None:
    """With a narrow MLP queries, keys and values count twice each."""
    model = dense(intermediate_size=8)
    assert widths(model).attention == 2 * 8 * 128 + 2 * 8 * 128
    assert forward_bytes(model, 1, 10) == 2 * 10 * (2 * 1024 + 4 * 8 * 128)


def test_latent_attention_expands_keys_to_every_head() -> None:
    """MLA's heads are as wide as the part without position and the value together."""
    assert widths(latent(sparse=False)).attention == 4 * 8 * (128 + 128)


def test_gated_delta_net_has_a_width_of_its_own() -> None:
    """Queries, keys, values and gates of a recurrent layer count, before and after the kernel."""
    state = StateSpec("gated_delta_net", 4, num_value_heads=32, value_head_dim=128,
                      num_key_heads=16, key_head_dim=128)  # fmt: skip
    model = dense(layers=(LayerSpec(state),), intermediate_size=8)
    assert widths(model).linear_attention == 2 * (2 * 16 * 128 + 2 * 32 * 128)


def test_a_model_of_experts_only_has_no_dense_mlp() -> None:
    """The intermediate size of the config does not count where no layer has it."""
    assert widths(experts()).dense_mlp == 0


def test_shared_experts_count_as_a_dense_mlp_of_their_size() -> None:
    """A shared expert runs for every token."""
    shared = dense(
        tensors=(TensorGroup("mlp.shared_experts.down_proj", "shared", 0, 1024, 512),),
        num_experts=8,
        moe_intermediate_size=512,
    )
    assert widths(shared).dense_mlp == 3 * 512


def test_expert_workspace_holds_each_token_once_per_chosen_expert() -> None:
    """Two buffers of tokens x chosen experts, as wide as the wider of hidden and inner size."""
    assert expert_workspace_bytes(dense(), Layout(), 100) == 0
    columns = max(512, 1024) + max(2 * 512, 1024)
    assert expert_workspace_bytes(experts(), Layout(), 100) == 2 * 100 * 2 * columns


def test_expert_parallelism_keeps_experts_whole_and_gathers_all_engines_tokens() -> None:
    """Without it the cards of all data-parallel engines share each expert's width."""
    model = experts()
    wide = dense(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=8192)
    split = Layout(tensor_parallel_size=2, data_parallel_size=2)
    whole = Layout(tensor_parallel_size=2, data_parallel_size=2, enable_expert_parallel=True)
    assert expert_workspace_bytes(wide, split, 10) == 2 * 20 * 2 * (2048 + 4096)
    assert expert_workspace_bytes(wide, whole, 10) == 2 * 20 * 2 * (8192 + 16384)
    assert expert_workspace_bytes(model, whole, 10) == 2 * 20 * 2 * (1024 + 1024)


def test_sparse_attention_reserves_rows_by_the_longest_length() -> None:
    """The factor changes above 256k tokens; other models reserve nothing."""
    assert uses_sparse_mla(latent(sparse=True))
    assert not uses_sparse_mla(latent(sparse=False))
    assert sparse_workspace_bytes(latent(sparse=False), 1000, (5, 2)) == 0
    assert sparse_workspace_bytes(latent(sparse=True), 262_144, (5, 2)) == 5 * 262_144 * 1152
    assert sparse_workspace_bytes(latent(sparse=True), 262_145, (5, 2)) == 2 * 262_145 * 1152


def test_the_embedding_table_is_split_over_the_ranks() -> None:
    """Two bytes a value."""
    assert embedding_bytes(dense(), 1) == 2 * 4096 * 1024
    assert embedding_bytes(dense(), 4) == 2 * 4096 * 1024 // 4
