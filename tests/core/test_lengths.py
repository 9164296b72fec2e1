"""How long a request may be: derived from the config, or refused in vLLM's words."""

import pytest

from app.core.lengths import derived_max_model_len, resolve_max_model_len
from app.core.model_spec import LengthSpec
from app.core.reasons import Refusal
from tests.core.oracle import releases

NEWEST = releases().newest
YARN = LengthSpec(
    keys=(("max_position_embeddings", 131072),),
    rope_type="yarn",
    rope_factor=4.0,
    original_max_position_embeddings=32768,
)


def old(version: str) -> tuple[float, str]:
    """Derive the length of a YaRN model in an older release."""
    return derived_max_model_len(YARN, releases().release_for(version)[0])


def test_the_smallest_length_key_decides_unless_the_tokenizer_has_one() -> None:
    """Of several keys the smallest counts; `model_max_length` beats them all."""
    keys = (("max_position_embeddings", 8192), ("seq_length", 4096))
    assert derived_max_model_len(LengthSpec(keys), NEWEST) == (4096, "seq_length")
    longer = LengthSpec((*keys, ("model_max_length", 16384)))
    assert derived_max_model_len(longer, NEWEST) == (16384, "model_max_length")


def test_a_config_without_length_gets_the_fallback() -> None:
    """2048 tokens, and any given length is taken."""
    nothing = LengthSpec(keys=())
    assert resolve_max_model_len(None, nothing, NEWEST) == (2048, 2048, False)
    assert resolve_max_model_len(50_000, nothing, NEWEST)[0] == 50_000
    with pytest.raises(Refusal) as refused:
        resolve_max_model_len(-1, nothing, NEWEST)
    assert refused.value.reason.vllm_error.startswith("max_model_len must be a positive integer")


def test_yarn_is_multiplied_up_to_029_and_taken_as_scaled_from_030() -> None:
    """The original length times the factor, or the config's figure."""
    assert old("0.29.0") == (32768 * 4.0, "max_position_embeddings")
    assert old("0.30.0") == (131072.0, "max_position_embeddings")


def test_other_factors_multiply_and_llama3_is_scaled_already() -> None:
    """Linear scaling multiplies; `llama3` and `longrope` do not."""
    linear = LengthSpec((("max_position_embeddings", 8192),), "linear", 8.0)
    assert derived_max_model_len(linear, NEWEST)[0] == 65536
    llama3 = LengthSpec((("max_position_embeddings", 131072),), "llama3", 8.0)
    assert derived_max_model_len(llama3, NEWEST)[0] == 131072
    longrope = LengthSpec((("max_position_embeddings", 131072),), "longrope", None, 4096)
    assert resolve_max_model_len(None, longrope, NEWEST)[0] == 4096
    gemma = LengthSpec((("max_position_embeddings", 131072),), "linear", 8.0, None, "gemma3_text")
    assert derived_max_model_len(gemma, NEWEST)[0] == 131072


@pytest.mark.parametrize(("version", "printed"), [("0.11.2", "=8192 or"), ("0.12.0", "=8192.0 or")])
def test_a_length_above_the_derived_one_is_refused(version: str, printed: str) -> None:
    """The refusal names both lengths as the release prints them, and the key."""
    spec = LengthSpec((("max_position_embeddings", 8192),))
    with pytest.raises(Refusal) as refused:
        resolve_max_model_len(8193, spec, releases().release_for(version)[0])
    reason = refused.value.reason
    assert reason.code == "context_too_long"
    assert (
        f"(8193) is greater than the derived max_model_len (max_position_embeddings{printed}"
        in (reason.vllm_error)
    )
    assert resolve_max_model_len(8192, spec, NEWEST) == (8192, 8192, False)


def test_only_yarn_itself_starts_again_from_the_original_length() -> None:
    """Up to 0.29.0 DeepSeek's YaRN multiplies the config's length, the plain one the original."""
    before = releases().release_for("0.29.0")[0]
    deepseek = LengthSpec((("max_position_embeddings", 4096),), "deepseek_yarn", 40.0, 2048)
    assert derived_max_model_len(deepseek, before)[0] == 4096 * 40
    unstated = LengthSpec((("max_position_embeddings", 4096),), "yarn", 4.0)
    assert derived_max_model_len(unstated, before)[0] == 4096 * 4
    assert derived_max_model_len(deepseek, NEWEST)[0] == 4096


def test_auto_is_refused_where_the_release_does_not_know_it() -> None:
    """`auto` came with 0.14.0; without any length in the config it is refused to this day."""
    spec = LengthSpec((("max_position_embeddings", 8192),))
    before, since = (releases().release_for(version)[0] for version in ("0.13.0", "0.14.0"))
    assert resolve_max_model_len(-1, spec, since) == (8192, 8192, True)
    for length, release in ((spec, before), (LengthSpec(keys=()), NEWEST)):
        with pytest.raises(Refusal) as refused:
            resolve_max_model_len(-1, length, release)
        reason = refused.value.reason
        assert (reason.code, reason.numbers) == ("refused_by_vllm", (("max_model_len", "auto"),))


def test_auto_and_nothing_given_start_from_the_same_length() -> None:
    """Longrope starts from its original length, and both tell apart who asked for the longest."""
    longrope = LengthSpec((("max_position_embeddings", 131072),), "longrope", None, 4096)
    assert resolve_max_model_len(None, longrope, NEWEST) == (4096, 131072, False)
    assert resolve_max_model_len(-1, longrope, NEWEST) == (4096, 131072, True)
    assert resolve_max_model_len(8192, longrope, NEWEST) == (8192, 131072, False)


def test_the_tokenizers_length_is_allowed_even_above_the_derived_one() -> None:
    """16,384 of the tokenizer, halved by its rope: 16,384 is taken, one token more is refused."""
    spec = LengthSpec((("model_max_length", 16384),), "linear", 0.5)
    assert resolve_max_model_len(16384, spec, NEWEST) == (16384, 8192, False)
    with pytest.raises(Refusal) as refused:
        resolve_max_model_len(16385, spec, NEWEST)
    assert dict(refused.value.reason.numbers) == {
        "max_model_len": 16385,
        "derived_max_model_len": 8192.0,
        "key": "model_max_length",
        "model_max_length": "16384",
    }
