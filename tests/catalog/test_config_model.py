"""A model from a config alone: its parts by the size of the files, its precision by name."""

from dataclasses import replace

import pytest

from app.catalog.config_model import model_from_config, parts_by_size, precision_of
from app.catalog.hf_fields import ConfigError
from app.core.checkpoint import Quantization
from app.core.weights import checkpoint_bytes
from tests.catalog.test_hf_quantization import LLAMA, QWEN_MOE
from tests.shipped import catalogue


def test_a_plain_config_is_a_model_in_its_own_dtype() -> None:
    """Without a size, everything that the config describes is taken to be in the files."""
    made = model_from_config(LLAMA, hf_id="some/model")
    assert made.spec.num_hidden_layers == 4
    assert made.checkpoint.precision == "bf16"
    assert made.checkpoint.confidence == "unknown"
    assert made.checkpoint.includes == frozenset()


def test_config_and_file_beside_it_are_read_together() -> None:
    """The checkpoint carries method, KV cache and the size that was published."""
    beside = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    made = model_from_config(QWEN_MOE, beside, weights_bytes=1_000_000)
    assert made.checkpoint.precision == "fp8"
    assert made.checkpoint.kv_cache_scheme == "fp8_e4m3"
    assert made.checkpoint.weights_bytes == 1_000_000
    assert made.checkpoint.confidence == "published-index"


def test_an_unknown_architecture_is_read_only_when_asked_to() -> None:
    """As `read_config`: named, or taken for a plain decoder."""
    config = {**LLAMA, "architectures": ["NewForCausalLM"], "model_type": "new"}
    with pytest.raises(ConfigError) as caught:
        model_from_config(config)
    assert caught.value.code == "architecture_unknown"
    assert model_from_config(config, assume_unknown=True).spec.tensors


def test_the_size_of_the_files_tells_which_parts_they_hold() -> None:
    """For every model of the catalogue with towers or drafts, and every choice of its parts."""
    checked = 0
    for model in catalogue().models.values():
        checkpoint = model.checkpoints[0].checkpoint
        described = sorted(
            {group.part for group in model.spec.tensors} & {"mtp", "vision", "audio"}
        )
        everything = replace(checkpoint, includes=frozenset(described))
        for parts in [frozenset(described[:count]) for count in range(len(described) + 1)]:
            size = checkpoint_bytes(model.spec, replace(checkpoint, includes=parts))
            assert parts_by_size(model.spec, everything, size) == parts
            checked += len(described) > 0
    assert checked > 60


def test_precisions_are_named_as_in_the_catalogue() -> None:
    """Checkpoints of the catalogue get its names, or the finer one where it says `fp8`."""
    names: dict[str, set[str]] = {}
    for model in catalogue().models.values():
        for entry in model.checkpoints:
            read = precision_of(entry.checkpoint.quantization)
            names.setdefault(entry.checkpoint.precision, set()).add(read)
    assert names.pop("fp8") == {"fp8", "fp8-block", "fp8-dynamic"}
    assert names.pop("mixed") == {"mxfp4"}
    assert all(read == {name} for name, read in names.items())
    assert len(names) == 11


@pytest.mark.parametrize(
    ("schemes", "name"),
    [
        ((), "bf16"),
        ((("attn", "fp8_tensor"), ("mlp", "fp8_tensor")), "fp8"),
        ((("attn", "fp8_block_ue8m0"), ("expert", "mxfp4")), "mxfp4"),
        ((("mlp", "fp8_block"),), "fp8-block"),
        ((("mlp", "gptq_g32"),), "gptq-int4"),
        ((("mlp", "awq_g64"),), "awq-int4"),
        ((("mlp", "w4a16_zp"),), "int4-w4a16"),
        ((("mlp", "bnb_nf4"),), "mixed"),
    ],
)
def test_the_precision_is_that_of_most_weights(
    schemes: tuple[tuple[str, str], ...], name: str
) -> None:
    """Experts count before dense layers, those before attention."""
    assert precision_of(Quantization("any", schemes)) == name
