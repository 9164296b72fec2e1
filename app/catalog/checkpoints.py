"""Checkpoints of a model: their rows in `data/models/*.json`, and which one a person means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from app.catalog.facts import StrictModel, Text
from app.core.checkpoint import Checkpoint, Quantization

Precision = Literal[
    "bf16",
    "fp8",
    "fp8-dynamic",
    "fp8-block",
    "nvfp4",
    "mxfp4",
    "mxfp8",
    "awq-int4",
    "gptq-int4",
    "int4-w4a16",
    "int8-w8a8",
    "int8-w8a16",
    "mixed",
]
PRECISIONS: tuple[str, ...] = get_args(Precision)
FAMILIES: dict[str, frozenset[str]] = {
    "fp8": frozenset({"fp8", "fp8-dynamic", "fp8-block"}),
    "int4": frozenset({"awq-int4", "gptq-int4", "int4-w4a16"}),
}
_PREFERRED_ORGANISATIONS = ("nvidia", "redhatai")

ModuleClass = Literal[
    "attn", "mlp", "expert", "shared", "ssm", "lm_head", "router", "embed", "mtp", "vision", "audio"
]
Part = Literal["mtp", "mtp_shared", "vision", "audio"]
HfId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*$", max_length=140)]


class QuantizationRow(StrictModel):
    """How the linear layers are stored.

    `method` is vLLM's quantisation name. `schemes` maps a class of layers (or a part: mtp, vision)
    to a scheme of `app/core/storage_schemes.py`, `by_name` single tensors; what is named nowhere
    keeps the model's dtype. `sure`: `read` in the checkpoint's own quantisation config, `counted`
    (these schemes give the published element count exactly), `documented` by the maker,
    `assumed` from what the same organisation does elsewhere.
    """

    method: Annotated[str, Field(pattern=r"^[a-z0-9_\-]+$")]
    schemes: dict[ModuleClass, str]
    by_name: Annotated[dict[str, str], Field(default_factory=dict)]
    sure: Literal["read", "counted", "documented", "assumed"]
    source: Text


class KvCacheRow(StrictModel):
    """The KV cache dtype the checkpoint declares; `none` when it is known to declare nothing."""

    value: Literal["fp8_e4m3", "nvfp4", "none"]
    sure: Literal["read", "documented", "sibling", "format"]
    source: Text


class WeightsRow(StrictModel):
    """Bytes of the weight files.

    `kind`: `published-…` somebody gave the size of the files, index, tensors or a rounded figure;
    `count-times-2` the published element count times two bytes; `derived-exact-count` the shapes
    at these schemes give the published element count exactly, so their bytes are taken.
    """

    value: Annotated[int, Field(gt=0)]
    kind: Literal[
        "published-files",
        "published-card",
        "published-index",
        "published-rounded",
        "published-tensor-bytes",
        "published-dtype-map",
        "count-times-2",
        "derived-exact-count",
    ]
    source: Text


class ConfigChangesRow(StrictModel):
    """Keys of the config in which this repository differs from the model's."""

    values: Annotated[dict[str, int], Field(min_length=1)]
    source: Text


class CheckpointRow(StrictModel):
    """One repository of weights. Absent facts are unknown: nothing is guessed into the file.

    `includes` names the optional parts in the files (`mtp_shared`: copies of embedding and output
    head beside the draft); `source` says where the repository was seen when no size was.
    """

    hf_id: HfId
    precision: Precision
    quantization: QuantizationRow | None = None
    kv_cache_scheme: KvCacheRow | None = None
    weights_bytes: WeightsRow | None = None
    config_changes: ConfigChangesRow | None = None
    includes: Annotated[list[Part], Field(default_factory=list)]
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueCheckpoint:
    """A checkpoint for the core (`checkpoint`) and its facts with their sources (`row`)."""

    checkpoint: Checkpoint
    row: CheckpointRow

    @property
    def hf_id(self) -> str:
        """Repository on the Hugging Face hub."""
        return self.row.hf_id

    @property
    def precision(self) -> str:
        """One of PRECISIONS."""
        return self.row.precision

    @property
    def organisation(self) -> str:
        """Who published it: the first half of the Hugging Face id."""
        return self.row.hf_id.partition("/")[0]

    @property
    def kv_cache_scheme_known(self) -> bool:
        """False when nobody read whether this checkpoint declares a KV cache dtype."""
        return self.row.kv_cache_scheme is not None or self.row.quantization is None

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Codes of what is not known: weights_bytes, quantization_assumed, kv_cache_scheme."""
        quantization = self.row.quantization
        facts = (
            ("weights_bytes", self.row.weights_bytes is None),
            ("quantization_assumed", quantization is not None and quantization.sure == "assumed"),
            ("kv_cache_scheme", not self.kv_cache_scheme_known),
        )
        return tuple(code for code, missing in facts if missing)


def read_checkpoint(row: CheckpointRow) -> CatalogueCheckpoint:
    """Turn a row into the core's Checkpoint."""
    quantization = Quantization()
    if row.quantization is not None:
        quantization = Quantization(
            method=row.quantization.method,
            schemes=tuple(row.quantization.schemes.items()),
            by_name=tuple(row.quantization.by_name.items()),
        )
    declared = row.kv_cache_scheme.value if row.kv_cache_scheme else "none"
    weights = row.weights_bytes
    checkpoint = Checkpoint(
        hf_id=row.hf_id,
        precision=row.precision,
        quantization=quantization,
        kv_cache_scheme=None if declared == "none" else declared,
        weights_bytes=weights.value if weights else None,
        confidence=weights.kind if weights else "unknown",
        source=weights.source if weights else row.source,
        includes=frozenset(row.includes),
    )
    return CatalogueCheckpoint(checkpoint, row)


def select_checkpoints(
    checkpoints: Sequence[CatalogueCheckpoint], wanted: str, main_hf_id: str
) -> tuple[CatalogueCheckpoint, ...]:
    """Find the checkpoints that `wanted` means, the chosen one first; empty when there is none.

    `wanted` is a Hugging Face id (any case), a precision, or a family (`fp8`, `int4`); empty for
    the maker's main checkpoint. Several match: the model's maker first (the main checkpoint before
    others), then nvidia, RedHatAI, then by name.
    """
    text = wanted.strip().casefold() or main_hf_id.casefold()
    by_id = [each for each in checkpoints if each.hf_id.casefold() == text]
    if by_id:
        return tuple(by_id)
    precisions = FAMILIES.get(text, frozenset({text}))
    matching = (each for each in checkpoints if each.precision in precisions)
    return tuple(sorted(matching, key=lambda each: preference(each.hf_id, main_hf_id)))


def preference(hf_id: str, main_hf_id: str) -> tuple[int, bool, str]:
    """Sort key of a checkpoint: maker, nvidia, RedHatAI, the rest; main one first, then names."""
    organisation = _organisation(hf_id)
    order = (_organisation(main_hf_id), *_PREFERRED_ORGANISATIONS)
    rank = order.index(organisation) if organisation in order else len(order)
    return rank, hf_id != main_hf_id, hf_id.casefold()


def _organisation(hf_id: str) -> str:
    return hf_id.partition("/")[0].casefold()


def precisions_of(checkpoints: Iterable[CatalogueCheckpoint]) -> tuple[str, ...]:
    """List the precisions that some checkpoint has, in the order of PRECISIONS."""
    present = {each.precision for each in checkpoints}
    return tuple(each for each in PRECISIONS if each in present)
