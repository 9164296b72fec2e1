"""Answers become engine arguments; names that nobody knows are problems."""

import pytest

from app.core.engine import SpeculativeConfig
from app.wizard.answers import Answers
from app.wizard.engine_args import read_engine_args

DTYPES = {"bfloat16", "fp8"}


def test_what_was_set_arrives() -> None:
    """Plain values are passed on, objects are read."""
    args, problems = read_engine_args(
        Answers(
            max_model_len=-1,
            kv_cache_dtype="FP8",
            max_num_seqs=8,
            mamba_cache_mode="align",
            speculative_config='{"method":"mtp","num_speculative_tokens":3}',
            limit_mm_per_prompt='{"image":4,"video":{"count":0,"num_frames":2}}',
        ),
        DTYPES,
    )
    assert problems == ()
    assert args.max_model_len == -1
    assert args.kv_cache_dtype == "fp8"
    assert args.max_num_seqs == 8
    assert args.mamba_cache_mode == "align"
    assert args.speculative_config == SpeculativeConfig("mtp", 3)
    assert args.limit_mm_per_prompt == (("image", 4), ("video", 0))


def test_unknown_choices_name_the_nearest() -> None:
    """A mistyped cache dtype is a problem with the value that was probably meant."""
    args, problems = read_engine_args(Answers(kv_cache_dtype="fp88"), DTYPES)
    assert args.kv_cache_dtype == "auto"
    assert [(each.code, each.field) for each in problems] == [("unknown_value", "kv_cache_dtype")]
    assert dict(problems[0].numbers)["nearest"] == "fp8"


@pytest.mark.parametrize(
    ("written", "read"),
    [("half", "float16"), ("float", "float32"), ("HALF", "float16"), ("bfloat16", "bfloat16")],
)
def test_a_dtype_has_one_name_inside(written: str, read: str) -> None:
    """vLLM's second names of a dtype are read as the first, which everything else knows."""
    args, problems = read_engine_args(Answers(dtype=written), DTYPES)
    assert (args.dtype, problems) == (read, ())


@pytest.mark.parametrize(
    ("field", "text", "key"),
    [
        ("speculative_config", '{"num_speculative_tokens":3}', "method"),
        ("speculative_config", '{"method":"mtp"}', "num_speculative_tokens"),
        ("speculative_config", '{"method":"mtp","num_speculative_tokens":true}',
         "num_speculative_tokens"),
        ("speculative_config", '{"method":"mtp","num_speculative_tokens":0}',
         "num_speculative_tokens"),
        ("limit_mm_per_prompt", '{"image":-1}', "image"),
        ("limit_mm_per_prompt", '{"smell":1}', "smell"),
    ],
)  # fmt: skip
def test_objects_name_the_key_that_is_wrong(field: str, text: str, key: str) -> None:
    """What a JSON object lacks is named by its key."""
    _, problems = read_engine_args(Answers(**{field: text}), DTYPES)  # type: ignore[arg-type]
    assert [(each.code, each.field) for each in problems] == [("object_value", field)]
    assert dict(problems[0].numbers)["key"] == key
