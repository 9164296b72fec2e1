"""A checkpoint nobody published: a model in a precision, stored as most others of that precision.

What "most" is, the catalogue's own checkpoints say, so the rule follows the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.catalog.checkpoints import PRECISIONS, CatalogueCheckpoint
from app.core.checkpoint import Checkpoint, Quantization

LINEAR_CLASSES: Final = ("attn", "mlp", "expert", "shared", "ssm")
EXPERTS: Final = "expert"
# of a family, the kind that anyone can make from 16-bit weights without calibration data
TYPICAL_OF_FAMILY: Final = {"fp8": "fp8-dynamic", "int4": "int4-w4a16"}
UNQUANTIZED_PRECISION: Final = "bf16"


@dataclass(frozen=True, slots=True)
class SupposedCheckpoint:
    """A checkpoint for the core; `like` counts the checkpoints it was modelled on."""

    checkpoint: Checkpoint
    like: int


def suppose_checkpoint(
    precision: str,
    catalogue: Iterable[CatalogueCheckpoint],
    *,
    has_experts: bool,
    includes: frozenset[str],
) -> SupposedCheckpoint | None:
    """Suppose a checkpoint of a precision (or family); None for what is no precision.

    Models with experts follow those with experts, dense ones dense ones, where there are any.
    `includes` are the optional parts the files would hold, as the model's main checkpoint does.
    """
    kind = TYPICAL_OF_FAMILY.get(precision, precision)
    if kind not in PRECISIONS:
        return None
    rows = [each for each in catalogue if each.precision == kind]
    like = [each for each in rows if (EXPERTS in _schemes(each)) == has_experts] or rows
    quantization = Quantization() if kind == UNQUANTIZED_PRECISION else _usual(like)
    if quantization is None:
        return None
    checkpoint = Checkpoint(
        hf_id="",
        precision=kind,
        quantization=quantization,
        confidence="supposed",
        includes=includes,
    )
    return SupposedCheckpoint(checkpoint, len(like))


def _usual(like: Sequence[CatalogueCheckpoint]) -> Quantization | None:
    """Take the most common method and scheme; experts alone where most store only those so."""
    schemes = Counter(scheme for each in like for scheme in set(_schemes(each).values()))
    if not schemes:
        return None
    methods = Counter(each.checkpoint.quantization.method for each in like)
    experts_alone = sum(set(_schemes(each)) == {EXPERTS} for each in like)
    classes = (EXPERTS,) if 2 * experts_alone > len(like) else LINEAR_CLASSES
    scheme = schemes.most_common(1)[0][0]
    return Quantization(
        method=methods.most_common(1)[0][0], schemes=tuple((name, scheme) for name in classes)
    )


def _schemes(checkpoint: CatalogueCheckpoint) -> dict[str, str]:
    schemes = checkpoint.checkpoint.quantization.schemes
    return {name: scheme for name, scheme in schemes if name in LINEAR_CLASSES}
