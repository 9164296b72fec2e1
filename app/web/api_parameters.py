"""The inputs of a sizing in OpenAPI's words: one description for the query and for the body."""

from __future__ import annotations

from typing import Any, Final

from app.wizard.inputs import INPUTS, LAYOUT_INPUTS, Input
from app.wizard.readers import MAX_TEXT_LENGTH

POST_ONLY: Final = ("hf_config", "hf_quant_config")
MATRIX_LISTS: Final = ("gpus", "layouts")
TAKEN_BY_THE_MATRIX: Final = {
    **dict.fromkeys(("gpu", "server", "gpu_total_memory_bytes"), "gpus"),
    **dict.fromkeys(LAYOUT_INPUTS, "layouts"),
}
SUFFIXED: Final = r"^([0-9]+(\.[0-9]+)?[kmgt]|[0-9]+[KMGT])$"
EXAMPLE: Final = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": 8192,
}
DESCRIPTIONS: Final = {
    "model": "Catalogue slug, or Hugging Face id of a model or of one of its checkpoints.",
    "revision": "Commit of `model` on the hub, where its config.json comes along.",
    "hf_config": "A model's config.json, instead of `model`.",
    "hf_quant_config": "The hf_quant_config.json beside that config.json.",
    "assume_plain_decoder": (
        "Read a config.json of an unknown architecture as a plain Llama-like decoder."
    ),
    "checkpoint": "Hugging Face id of a checkpoint of the model, or a precision such as `fp8`.",
    "gpu": "Slug of a card, as `/api/v1/gpus` lists them.",
    "gpu_total_memory_bytes": "What vLLM sees of the card, instead of the catalogue's figure.",
    "other_processes_gib": "Memory that other processes hold on each card before vLLM starts.",
    "vllm_version": "A release of vLLM; an unknown one is answered by the newest known below it.",
    "replicas": "Separate copies behind a load balancer.",
    "server": "Slug of a server.",
    "hf_overrides": "Keys laid over the model's config, as --hf-overrides does.",
    "available_kv_cache_memory_bytes": (
        "Memory for the cache per card, as the start log prints it: no estimate, no range."
    ),
    "measured_weights_gib": "Weights as a start log prints them, per card.",
    "measured_peak_activation_gib": "Activation peak as a start log prints it, per card.",
    "measured_non_torch_gib": "Non-torch memory as a start log prints it, per card.",
    "measured_cudagraph_gib": "Graph memory as a start log prints it, per card.",
    "measured_on": (
        "The server that the measured terms were read on, as an object of these inputs; for "
        "another server they are carried over. Left out: they count as they are."
    ),
    "peak_requests": "Requests in flight at the peak, measured.",
    "mean_request_tokens": "Mean length of a request, prompt and answer, measured.",
    "p95_request_tokens": "Length that 95 of 100 requests stay below, measured.",
}


def parameters() -> list[dict[str, Any]]:
    """Describe the query parameters; objects travel as JSON text."""
    return [
        {
            "name": each.name,
            "in": "query",
            "required": False,
            "description": _description(each),
            **_query_schema(each),
        }
        for each in INPUTS
        if each.name not in POST_ONLY
    ]


def matrix_parameters() -> list[dict[str, Any]]:
    """Describe the query of the matrix: every input but card and layout, and lists of those."""
    kinds = {"gpus": "string", "layouts": "object"}
    descriptions = {
        "gpus": "Slugs of cards as a JSON list; left out: all cards.",
        "layouts": "Layouts as a JSON list of objects; left out: the usual ones for the model.",
    }
    return [
        *(each for each in parameters() if each["name"] not in TAKEN_BY_THE_MATRIX),
        *(
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": descriptions[name],
                "content": {
                    "application/json": {
                        "schema": {"type": "array", "items": {"type": kinds[name]}}
                    }
                },
            }
            for name in MATRIX_LISTS
        ),
    ]


def body_schema() -> dict[str, Any]:
    """Describe the JSON object."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            each.name: {"description": _description(each), **_schema(each)} for each in INPUTS
        },
    }


def _description(each: Input) -> str:
    flag = f"As vLLM's --{each.name.replace('_', '-')}."
    unsure = " `unsure` for a documented default." if each.unsure else ""
    return DESCRIPTIONS.get(each.name, flag) + unsure


def _query_schema(each: Input) -> dict[str, Any]:
    if each.kind == "object":
        return {"content": {"application/json": {"schema": _schema(each)}}}
    example = {"example": EXAMPLE[each.name]} if each.name in EXAMPLE else {}
    return {"schema": _schema(each), **example}


def _schema(each: Input) -> dict[str, Any]:
    bounds = {
        key: value
        for key, value in (("minimum", each.minimum), ("maximum", each.maximum))
        if value is not None
    }
    kinds: dict[str, dict[str, Any]] = {
        "text": {"type": "string", "maxLength": MAX_TEXT_LENGTH},
        "flag": {"type": "boolean"},
        "object": {"type": "object"},
        "decimal": {"type": "number", **bounds},
        "integer": {"type": "integer", **bounds},
    }
    if each.kind in kinds:
        return kinds[each.kind]
    words = [{"enum": ["auto", "-1"]}] if each.kind == "length" else []
    text = {"type": "string", "pattern": SUFFIXED}
    return {"anyOf": [{"type": "integer", **bounds}, text, *words]}
