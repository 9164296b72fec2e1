"""Whatever a config.json holds, the answer is a model or a named reason."""

import json
import math
import random
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from app.catalog.hf_config import read_config
from app.catalog.hf_fields import ConfigError
from app.catalog.hf_quantization import read_quantization
from app.catalog.runs import expand_runs
from app.core.checkpoint import Checkpoint
from app.core.weights import checkpoint_bytes

ROOT = Path(__file__).parents[2]
SLOWEST_SECONDS = 5.0
ODD_VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    7,
    2**31,
    2**63,
    10**400,
    0.5,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "auto",
    "4096",
    "full_attention",
    "x" * 100_000,
    [],
    [[]],
    [None],
    [0] * 5000,
    ["re:(a*)*$"],
    ["re:" + "(" * 200],
    ["re:.*" * 100],
    ["*"] * 300,
    {},
    {"": {}},
    {"factor": "8"},
    {"rope_type": "yarn", "factor": 10**30},
)
ODD_KEYS = (
    "architectures",
    "model_type",
    "text_config",
    "llm_config",
    "vision_config",
    "audio_config",
    "quantization_config",
    "num_hidden_layers",
    "layer_types",
    "linear_attn_config",
    "kv_lora_rank",
    "index_n_heads",
    "num_experts",
    "rope_parameters",
    "rope_scaling",
    "hybrid_override_pattern",
    "block_configs",
    "head_dim",
    "dtype",
)
QUANTIZATIONS: tuple[Mapping[str, object], ...] = (
    {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["gate"]},
    {"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"]}}},
    {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"x": {}}},
    {"quant_method": "awq", "bits": 4, "group_size": 128},
    {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}},
    {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "*gate"]}},
)


@cache
def configs() -> tuple[dict[str, object], ...]:
    """Return every config of the catalogue."""
    files = sorted((ROOT / "data" / "models").glob("*.json"))
    return tuple(expand_runs(json.loads(path.read_text("utf-8"))["config"]) for path in files)


def mutated(dice: random.Random) -> dict[str, object]:
    """Take a config and spoil one to four places of it, at any depth."""
    config: dict[str, object] = json.loads(json.dumps(dice.choice(configs())))
    if dice.random() < 0.5:
        config["quantization_config"] = json.loads(json.dumps(dice.choice(QUANTIZATIONS)))
    for _ in range(dice.randint(1, 4)):
        spoil(config, dice)
    if dice.random() < 0.02:
        config = nested(config, 400)
    return config


def spoil(config: dict[str, object], dice: random.Random) -> None:
    """Change, remove or add one entry of the config or of a block within it."""
    place = config
    while dice.random() < 0.6:
        inner = [value for value in place.values() if isinstance(value, dict) and value]
        if not inner:
            break
        place = dice.choice(inner)
    key = dice.choice([*place, *ODD_KEYS])
    action = dice.random()
    if action < 0.25:
        place.pop(key, None)
    elif action < 0.35:
        place[key] = place.get(dice.choice([*place, key]))
    else:
        place[key] = dice.choice(ODD_VALUES)


def nested(config: dict[str, object], depth: int) -> dict[str, object]:
    """Wrap a config in text_config blocks."""
    for _ in range(depth):
        config = {"architectures": config.get("architectures"), "text_config": config}
    return config


def outcome(config: Mapping[str, object], *, assume_unknown: bool) -> str:
    """Read a config and its quantisation: `model` or the code of the reason."""
    try:
        model = read_config(config, assume_unknown=assume_unknown)
        quantization, _ = read_quantization(config, assume_unknown=assume_unknown)
    except ConfigError as error:
        return error.code
    assert checkpoint_bytes(model, Checkpoint("mutated", "any", quantization)) > 0
    return "model"


def read_many(count: int, seed: int) -> dict[str, int]:
    """Read mutated configs; returns how often each outcome came."""
    dice = random.Random(seed)  # noqa: S311 - nothing here is secret
    found: dict[str, int] = {}
    for number in range(count):
        config = mutated(dice)
        started = time.process_time()
        result = outcome(config, assume_unknown=number % 2 == 0)
        assert time.process_time() - started < SLOWEST_SECONDS, number
        found[result] = found.get(result, 0) + 1
    return found


@pytest.mark.slow
def test_300_mutated_configs_give_a_model_or_a_reason() -> None:
    """Nothing but a named reason is ever raised, and both outcomes occur."""
    found = read_many(300, seed=20_261_129)
    assert found["model"] > 30
    assert found["config_value_invalid"] > 30


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_10_000_mutated_configs_give_a_model_or_a_reason() -> None:
    """The same over ten thousand."""
    found = read_many(10_000, seed=7)
    assert found["model"] > 1000
    assert {"architecture_unknown", "config_key_missing", "config_too_large"} <= found.keys()


def test_a_reader_that_raises_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: an unguarded division is found among 300 configs."""
    monkeypatch.setattr(
        "app.catalog.hf_config._dtype", lambda fields, _text: str(1 // fields.integer("vocab", 0))
    )
    with pytest.raises(ZeroDivisionError):
        read_many(300, seed=20_261_129)
