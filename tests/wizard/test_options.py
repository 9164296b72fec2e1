"""Only what can work is offered; the rest is shown with its reason."""

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.core.ways_out import ways_out
from app.wizard.alternatives import alternatives_for
from app.wizard.answers import Answers
from app.wizard.options import (
    checkpoint_options,
    kv_cache_dtype_options,
    options_for,
    tensor_parallel_options,
    unsure_checkpoint,
)
from app.wizard.sizing_request import to_request

LLAMA = Answers(model="llama-3.3-70b", checkpoint="fp8", gpu="rtx-pro-6000-server")


def test_checkpoints_of_the_model_are_offered_main_one_first(catalogue: Catalogue) -> None:
    """Every checkpoint is there with its bytes, and the one in use is marked."""
    options = checkpoint_options(LLAMA, catalogue)
    assert len(options) == len(catalogue.models["llama-3.3-70b"].checkpoints)
    assert options[0].checkpoint.hf_id == "meta-llama/Llama-3.3-70B-Instruct"
    assert [each.checkpoint.hf_id for each in options if each.option.chosen] == [
        "nvidia/Llama-3.3-70B-Instruct-FP8"
    ]
    assert all(each.weights_bytes for each in options)


def test_checkpoints_are_offered_before_a_card_is_known(catalogue: Catalogue) -> None:
    """The precision is asked before the card: nothing is ruled out yet."""
    options = checkpoint_options(Answers(model="llama-3.3-70b"), catalogue)
    assert all(each.option.valid for each in options)
    assert options[0].option.chosen
    assert checkpoint_options(Answers(), catalogue) == ()


def test_not_sure_means_fp8_where_there_is_one(catalogue: Catalogue) -> None:
    """The documented default is FP8, else the main checkpoint."""
    chosen = unsure_checkpoint(Answers(model="llama-3.3-70b"), catalogue)
    assert chosen is not None
    assert chosen.hf_id == "nvidia/Llama-3.3-70B-Instruct-FP8"
    assert unsure_checkpoint(Answers(), catalogue) is None


def test_sizes_that_do_not_divide_the_heads_are_shown_with_the_reason(
    catalogue: Catalogue,
) -> None:
    """TP 3 is no size for 64 heads; what merely lacks memory stays on offer."""
    options = options_for(LLAMA, catalogue, "tensor_parallel_size", (1, 3), "1")
    assert [each.valid for each in options] == [True, False]
    assert options[1].reason is not None
    assert options[1].reason.code == "heads_not_divisible"
    tight = options_for(LLAMA.with_changes(checkpoint="bf16"), catalogue,
                        "tensor_parallel_size", (1,), "1")  # fmt: skip
    assert tight[0].valid
    assert tight[0].result is not None
    assert not tight[0].result.ok


def test_sizes_end_at_the_server(catalogue: Catalogue) -> None:
    """On a server of four cards no group of eight is offered."""
    answers = LLAMA.with_changes(server="4x-rtx-pro-6000-server")
    assert [each.value for each in tensor_parallel_options(answers, catalogue)] == ["1", "2", "4"]


def test_cache_dtypes_of_the_release_follow_the_common_ones(catalogue: Catalogue) -> None:
    """The common four come first, the one in use is marked, the rest follows by name."""
    release, _ = catalogue.releases.release_for("0.32.0")
    options = kv_cache_dtype_options(LLAMA, catalogue, release)
    assert [each.value for each in options[:4]] == ["auto", "bfloat16", "fp8", "nvfp4"]
    assert options[0].chosen
    assert {each.value for each in options} == release.kv_cache_dtypes | {"auto"}


def test_alternatives_are_other_precisions_and_the_vendors_cards(catalogue: Catalogue) -> None:
    """Lighter checkpoints come first, one of each precision, and no card is the present one."""
    prepared = to_request(LLAMA, catalogue)
    assert prepared.request is not None
    offered = alternatives_for(prepared, catalogue)
    precisions = [each.precision for each in offered.checkpoints]
    assert len(precisions) == len(set(precisions))
    assert "fp8" not in precisions
    assert precisions[-1] == "bf16"
    assert [each.slug for each in offered.gpus] == ["h200-nvl"]
    full = to_request(LLAMA.with_changes(max_model_len=131072), catalogue)
    assert full.request is not None
    ways = ways_out(size(full.request), offered)
    assert {"max_model_len", "gpu"} <= {name for way in ways for name, _ in way.change}
