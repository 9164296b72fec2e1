"""How long a request may be: `max_model_len` derived from the config, or checked against it."""

from __future__ import annotations

from app.core.model_spec import LengthSpec
from app.core.refusals import refuse
from app.core.releases import Release
from app.core.units import AUTO_MAX_MODEL_LEN

FALLBACK_MAX_MODEL_LEN = 2048
_ALREADY_SCALED = frozenset({"su", "longrope", "llama3"})
_YARN = frozenset({"yarn", "deepseek_yarn", "deepseek_llama_scaling"})


def derived_max_model_len(length: LengthSpec, release: Release) -> tuple[float, str]:
    """Derive the longest length from the config, and name the key that set it.

    The value is a float where vLLM multiplies by a rope factor (its error text shows `40960.0`).
    Source: vllm/config/model.py `_get_and_verify_max_len`.
    """
    derived: float
    keys = dict(length.keys)
    if "model_max_length" in keys:
        key = "model_max_length"
        derived = keys[key]
    elif keys:
        key = min(keys, key=lambda name: keys[name])
        derived = keys[key]
    else:
        return FALLBACK_MAX_MODEL_LEN, "None"
    if "gemma3" in length.model_type or (length.rope_type is None and not release.rope_always):
        return derived, key
    return _scaled(derived, length, release), key


def _scaled(derived: float, length: LengthSpec, release: Release) -> float:
    if length.rope_type is None or length.rope_type in _ALREADY_SCALED:
        return float(derived)
    if length.rope_type in _YARN:
        original = length.original_max_position_embeddings
        if not release.yarn_factor_applied:
            return float(derived)
        if length.rope_type == "yarn" and original is not None:
            derived = original
    return derived * (1.0 if length.rope_factor is None else length.rope_factor)


def resolve_max_model_len(
    max_model_len: int | None, length: LengthSpec, release: Release
) -> tuple[int, int, bool]:
    """Resolve `--max-model-len` to (length, derived length, auto-fit).

    Raises Refusal `context_too_long` where vLLM refuses a length above the derived one, and
    `refused_by_vllm` where the release does not know `auto`.
    """
    derived, key = derived_max_model_len(length, release)
    if max_model_len == AUTO_MAX_MODEL_LEN and not release.auto_max_model_len:
        raise refuse(release, "refused_by_vllm", "auto_unknown", max_model_len="auto")
    if max_model_len == AUTO_MAX_MODEL_LEN and key == "None" and release.error("auto_without_keys"):
        raise refuse(release, "refused_by_vllm", "auto_without_keys", max_model_len="auto")
    if max_model_len is None or max_model_len == AUTO_MAX_MODEL_LEN:
        default = int(derived)
        if length.rope_type == "longrope" and length.original_max_position_embeddings:
            default = length.original_max_position_embeddings
        return default, int(derived), max_model_len == AUTO_MAX_MODEL_LEN
    if key == "None":
        return max_model_len, max_model_len, False
    model_max_length = dict(length.keys).get("model_max_length")
    if max_model_len > derived and (model_max_length is None or max_model_len > model_max_length):
        raise refuse(
            release,
            "context_too_long",
            max_model_len=max_model_len,
            derived_max_model_len=derived,
            key=key,
            model_max_length=str(model_max_length),
        )
    return max_model_len, int(derived), False
