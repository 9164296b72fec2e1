"""How a checkpoint's layers are stored, from a collected row (part of the catalogue import)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRECISIONS = {
    "fp8+fp4-experts": "mixed",
    "int4": "int4-w4a16",
    "int4-w4a16-g32(experts)": "int4-w4a16",
}
_SCHEMES = {
    "awq": "awq",
    "fp8-block": "fp8_block",
    "fp8-block-f32": "fp8_block_f32",
    "fp8-channel": "fp8_channel",
    "fp8-tensor": "fp8_tensor",
    "gptq": "gptq",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "nvfp4-hfcount": "nvfp4",
    "w4a16": "w4a16",
    "w4a16-g32": "w4a16_g32",
}
_USUAL_SCHEME = {
    "awq-int4": "awq",
    "fp8-block": "fp8_block",
    "int4-w4a16": "w4a16",
    "int8-w8a16": "w8a16",
    "int8-w8a8": "int8_channel",
    "mxfp4": "mxfp4",
}
_METHODS = {
    "awq-int4": "awq",
    "fp8": "fp8",
    "fp8-block": "fp8",
    "gptq-int4": "gptq",
}
_METHODS_OF_ORGANISATION = {
    ("nvidia", "fp8"): "modelopt",
    ("nvidia", "nvfp4"): "modelopt_fp4",
    ("openai", "mxfp4"): "mxfp4",
    ("amd", "mxfp4"): "quark",
    ("RedHatAI", "fp8"): "compressed-tensors",
    ("RedHatAI", "fp8-block"): "compressed-tensors",
    ("unsloth", "fp8-block"): "compressed-tensors",
}
_DECLARES_NO_KV_SCHEME = {"awq", "gptq", "fp8", "fbgemm_fp8", "deepseek_v4_fp8"}
_LINEAR_CLASSES = {
    "attn": ("attn", "kv_a", "kv_b"),
    "mlp": ("mlp",),
    "expert": ("expert",),
    "shared": ("shared",),
    "ssm": ("ssm",),
}
_SAME_SIZE = 0.001


def linear_classes(collected: Mapping[str, Any]) -> tuple[str, ...]:
    """Classes of linear layers that a model has, by its collected element counts."""
    counted = collected.get("element_breakdown") or {"attn": 1, "mlp": 1, "expert": 1, "shared": 1}
    return tuple(
        name for name, keys in _LINEAR_CLASSES.items() if any(counted.get(key) for key in keys)
    )


def quantization_row(
    checkpoint: Mapping[str, Any],
    precision: str,
    classes: tuple[str, ...],
    added: Mapping[str, Any],
) -> dict[str, Any] | None:
    """The `quantization` of a checkpoint's row; None for an unquantised one."""
    if precision == "bf16":
        return None
    hf_id = checkpoint["hf_id"]
    if hf_id in added:
        row = {key: value for key, value in added[hf_id].items() if key != "hf_ids"}
        return row | {"schemes": _spread(row["schemes"], classes)}
    predicted = checkpoint.get("predicted_scheme") or ""
    schemes, by_name = _predicted(predicted or _USUAL_SCHEME[precision], classes, hf_id)
    counted = _is_counted(checkpoint)
    row = {
        "method": _method(hf_id.split("/")[0], precision, schemes),
        "schemes": schemes,
        "by_name": by_name,
        "sure": "counted" if counted else "assumed",
        "source": (
            "gives the published element count or size"
            if counted
            else "the usual form of this precision; no quantisation config read"
        ),
    }
    return {key: value for key, value in row.items() if value != {}}


def kv_cache_row(
    hf_id: str, quantization: Mapping[str, Any] | None, added: Mapping[str, Any]
) -> dict[str, str] | None:
    """The KV cache dtype a checkpoint declares; None where it is unknown or there is no config."""
    if hf_id in added:
        return {key: added[hf_id][key] for key in ("value", "sure", "source")}
    if quantization and quantization["method"] in _DECLARES_NO_KV_SCHEME:
        return {
            "value": "none",
            "sure": "format",
            "source": f"a quantisation config of the method {quantization['method']} names none",
        }
    return None


def _spread(schemes: Mapping[str, str], classes: tuple[str, ...]) -> dict[str, str]:
    """Write `all` out as the classes the model has."""
    spread = dict.fromkeys(classes, schemes["all"]) if "all" in schemes else {}
    return spread | {name: scheme for name, scheme in schemes.items() if name != "all"}


def _predicted(
    text: str, classes: tuple[str, ...], hf_id: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Read `nvfp4`, or `mlp:nvfp4+attn:fp8-tensor`, into schemes by class and by name."""
    if ":" not in text:
        scheme = _SCHEMES.get(text, text)
        experts_only = (
            scheme == "mxfp4" and "expert" in classes and not hf_id.startswith("RedHatAI/")
        )
        return dict.fromkeys(("expert",) if experts_only else classes, scheme), {}
    parts = dict(part.split(":") for part in text.split("+"))
    by_name = {"self_attn.o_proj": _SCHEMES[parts.pop("attn_o")]} if "attn_o" in parts else {}
    return {name: _SCHEMES[scheme] for name, scheme in parts.items()}, by_name


def _is_counted(checkpoint: Mapping[str, Any]) -> bool:
    """Whether these schemes give the published element count, or the published bytes to 0.1 %."""
    published, predicted = checkpoint["weights_bytes"], checkpoint.get("predicted_bytes")
    if not published or not predicted:
        return False
    return bool(abs(published - predicted) <= _SAME_SIZE * published)


def _method(organisation: str, precision: str, schemes: Mapping[str, str]) -> str:
    if precision == "fp8" and "fp8_channel" in schemes.values():
        return "compressed-tensors"
    by_organisation = _METHODS_OF_ORGANISATION.get((organisation, precision))
    return by_organisation or _METHODS.get(precision, "compressed-tensors")
