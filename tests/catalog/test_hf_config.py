"""A config.json becomes a model: every family's tensors, defaults, and what is refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.catalog.hf_config import read_config
from app.catalog.hf_fields import ConfigError
from app.core.model_spec import ModelSpec
from tests.configs import LLAMA_CONFIG
from tests.shipped import catalogue

ROOT = Path(__file__).parents[2]
LLAMA: Mapping[str, object] = LLAMA_CONFIG | {"tie_word_embeddings": False}


def elements(model: ModelSpec, parts: frozenset[str]) -> int:
    """Count the elements of the parts of a model that its files hold."""
    held = {"model", "unused"} | parts
    return sum(
        group.count * group.out_features * group.in_features
        for group in model.tensors
        if group.part in held
    )


def refusal(config: object) -> ConfigError:
    """Return the error that a config is refused with."""
    with pytest.raises(ConfigError) as caught:
        read_config(config)  # type: ignore[arg-type]
    return caught.value


def test_every_element_count_of_the_hub_comes_out_of_the_shapes() -> None:
    """Counts of 106 published models are equal to the last element, save where reasons stand."""
    rows = json.loads((ROOT / "tests/golden/element_counts.json").read_text("utf-8"))["models"]
    for row in rows:
        model = catalogue().models[row["model"]]
        files = next(each for each in model.checkpoints if each.hf_id == row["hf_id"])
        ours = elements(model.spec, files.checkpoint.includes)
        assert ours - row["elements"] == row.get("difference", 0), row["model"]
        assert bool(row.get("difference")) == bool(row.get("why"))
    assert len(rows) == 106


@pytest.mark.slow
def test_every_model_of_the_catalogue_is_read() -> None:
    """All 114 configs give a model with layers, tensors and a length."""
    for model in catalogue().models.values():
        assert len(model.spec.layers) == model.spec.num_hidden_layers > 0
        assert model.spec.tensors
        assert model.spec.vocab_size > 1000
    assert len(catalogue().models) == 114


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"attention_bias": True}, 32 * (4096 + 2 * 1024 + 4096)),
        ({"mlp_bias": True}, 32 * (2 * 14_336 + 4096)),
        ({"tie_word_embeddings": True}, -128_256 * 4096),
        ({"head_dim": 64}, -32 * 4096 * 64 * (32 + 8 + 8 + 32)),
    ],
)
def test_a_key_changes_exactly_the_tensors_it_names(
    change: Mapping[str, object], expected: int
) -> None:
    """Bias, tied embeddings and head size move the element count by what they stand for."""
    nothing: frozenset[str] = frozenset()
    before = elements(read_config(LLAMA), nothing)
    assert elements(read_config({**LLAMA, **change}), nothing) - before == expected


def test_a_multimodal_config_is_read_through_its_text_part() -> None:
    """Sizes come from `text_config`, the tower from `vision_config`, ties from either."""
    text = {key: value for key, value in LLAMA.items() if key != "architectures"}
    wrapped = {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "text_config": text,
        "vision_config": {"model_type": "pixtral", "num_hidden_layers": 2},
    }
    model = read_config(wrapped)
    assert model.multimodal
    assert elements(model, frozenset()) == elements(read_config(LLAMA), frozenset())
    assert {group.layer for group in model.tensors if group.part == "vision"} == {-3}


def test_a_short_gemma_config_is_completed_with_its_class_defaults() -> None:
    """Gemma 3's published files leave heads, head size and vocabulary to the class."""
    model = read_config(
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        }
    )
    assert (model.num_attention_heads, model.num_key_value_heads, model.head_dim) == (8, 4, 256)
    assert model.tie_word_embeddings


def test_an_unknown_architecture_is_named() -> None:
    """Nothing is guessed: the message can say which architecture it was."""
    error = refusal({**LLAMA, "architectures": ["MambaFormerForCausalLM"]})
    assert error.code == "architecture_unknown"
    assert dict(error.numbers)["architecture"] == "MambaFormerForCausalLM"


def test_an_unknown_architecture_is_read_as_a_plain_decoder_on_request() -> None:
    """With the assumption confirmed it has a Llama's tensors and keeps its own name."""
    odd = {**LLAMA, "architectures": ["MambaFormerForCausalLM"], "model_type": "mambaformer"}
    model = read_config(odd, assume_unknown=True)
    assert model.architecture == "MambaFormerForCausalLM"
    assert model.tensors == read_config(LLAMA).tensors


@pytest.mark.parametrize(
    ("config", "code", "key"),
    [
        ([], "config_not_an_object", "."),
        ({**LLAMA, "hidden_size": None}, "config_key_missing", "hidden_size"),
        ({**LLAMA, "hidden_size": "4096"}, "config_value_invalid", "hidden_size"),
        ({**LLAMA, "hidden_size": -1}, "config_value_invalid", "hidden_size"),
        ({**LLAMA, "hidden_size": 10**400}, "config_value_invalid", "hidden_size"),
        ({**LLAMA, "hidden_size": float("nan")}, "config_value_invalid", "hidden_size"),
        ({**LLAMA, "hidden_size": True}, "config_value_invalid", "hidden_size"),
        ({**LLAMA, "num_hidden_layers": 10**9}, "config_value_invalid", "num_hidden_layers"),
        ({**LLAMA, "rope_scaling": 7}, "config_value_invalid", "rope_scaling"),
        ({**LLAMA, "architectures": ["A"] * 5000}, "config_too_large", "architectures"),
        ({**LLAMA, "text_config": 3}, "config_value_invalid", "text_config"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(config: object, code: str, key: str) -> None:
    """A fault has a code, the key, the value as given and the bounds."""
    error = refusal(config)
    assert error.code == code
    assert dict(error.numbers)["key"] == key
