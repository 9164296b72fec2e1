"""Models of a collected folder → `data/models/*.json` (part of the catalogue import)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.catalog.checkpoints import preference
from app.tools.catalogue_config import config_row
from app.tools.catalogue_quantization import (
    PRECISIONS,
    kv_cache_row,
    linear_classes,
    quantization_row,
)
from app.tools.catalogue_sources import reworded, weights_source

_SURENESS = {
    "raw": "published",
    "raw-from-quantized-sibling": "quantized_sibling",
}
_NAME_PREFIX = re.compile(r"^(?:NVIDIA-|Meta-|c4ai-)")
_LINE = 100


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote, and what its reader should look at."""

    models: int
    checkpoints: int
    remarks: tuple[str, ...]


def import_models(
    folder: Path, data: Path, additions: Mapping[str, Any], only: Sequence[str] | None
) -> Imported:
    """Write one JSON file per model of `folder` (those in `only`, when given)."""
    added = dict(additions)
    for table in ("quantization", "kv_cache_scheme"):
        added[table] = {hf_id: row for row in additions[table] for hf_id in row["hf_ids"]}
    models = checkpoints = 0
    remarks: list[str] = []
    left_out: Counter[str] = Counter()
    for path in sorted(folder.glob("*.json")):
        slug = path.stem
        if only and slug not in only:
            continue
        collected = json.loads(path.read_text(encoding="utf-8"))
        row = _model(slug, collected, added, remarks, left_out)
        (data / "models" / path.name).write_text(written(row) + "\n", encoding="utf-8")
        models += 1
        checkpoints += len(row["checkpoints"])
    if not only:
        remarks.extend(_unused(folder, additions))
    keys = ", ".join(f"{key} ({count})" for key, count in sorted(left_out.items()))
    return Imported(models, checkpoints, (*remarks, f"Config keys left out (models): {keys}"))


def _unused(folder: Path, additions: Mapping[str, Any]) -> Iterator[str]:
    """Additions that no collected model takes up: misspelt, or no longer needed."""
    by_slug = ("names", "aliases", "configs", "element_counts", "notes", "parts")
    slugs = {path.stem for path in folder.glob("*.json")}
    for table in by_slug:
        for slug in additions[table].keys() - slugs:
            yield f"additions.toml: [{table}] has {slug}, which was not collected"


def _model(
    slug: str,
    collected: Mapping[str, Any],
    added: Mapping[str, Any],
    remarks: list[str],
    left_out: Counter[str],
) -> dict[str, Any]:
    hf_id = collected["hf_id"]
    config, dropped = config_row(collected["config"], added["configs"].get(slug, {}), added)
    left_out.update(dropped)
    kind = collected["config_kind"]
    notes = (added["notes"].get(slug, ""), added["configs"].get(slug, {}).get("note", ""))
    if collected["notes"] and slug not in added["notes"] and not any(notes):
        remarks.append(f"{slug}: has no note of ours: {collected['notes']}")
    rows = [_checkpoint(slug, collected, each, added) for each in collected["checkpoints"]]
    return {
        "slug": slug,
        "name": added["names"].get(slug) or _name(hf_id),
        "maker": added["makers"][hf_id.split("/")[0]],
        "hf_id": hf_id,
        "aliases": added["aliases"].get(slug, []),
        "license": collected["license"],
        "gated": collected["gated"],
        "context_length": collected["context_length"],
        "config_sure": _SURENESS.get(kind, kind),
        "config_source": reworded(collected["source"]),
        "note": " ".join(note for note in notes if note),
        "element_count": added["element_counts"].get(slug) or _element_count(collected),
        "cache_not_checked": slug in added["cache_not_checked"]["slugs"],
        "config": config,
        "checkpoints": sorted(rows, key=lambda each: preference(each["hf_id"], hf_id)),
    }


def _checkpoint(
    slug: str, collected: Mapping[str, Any], checkpoint: Mapping[str, Any], added: Mapping[str, Any]
) -> dict[str, Any]:
    hf_id = checkpoint["hf_id"]
    precision = checkpoint["precision"] or added["precision"][hf_id]
    precision = PRECISIONS.get(precision, precision)
    quantization = quantization_row(
        checkpoint, precision, linear_classes(collected), added["quantization"]
    )
    row = {
        "hf_id": hf_id,
        "precision": precision,
        "quantization": quantization,
        "kv_cache_scheme": kv_cache_row(hf_id, quantization, added["kv_cache_scheme"]),
        "weights_bytes": _weights(checkpoint),
        "config_changes": added["config_changes"].get(hf_id),
        "includes": _parts(slug, collected, checkpoint, added),
        "source": weights_source(checkpoint["source"], hf_id),
    }
    if row["weights_bytes"]:
        del row["source"]
    return {key: value for key, value in row.items() if value is not None}


def _weights(checkpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    if checkpoint["weights_bytes"] is None:
        return None
    return {
        "value": checkpoint["weights_bytes"],
        "kind": checkpoint["bytes_kind"],
        "source": weights_source(checkpoint["source"], checkpoint["hf_id"]),
    }


def _parts(
    slug: str, collected: Mapping[str, Any], checkpoint: Mapping[str, Any], added: Mapping[str, Any]
) -> list[str]:
    """Optional parts in the files: counted ones, less the drafts where they are said to lack."""
    by_checkpoint = added["parts_of_checkpoint"].get(checkpoint["hf_id"])
    if by_checkpoint is not None:
        return list(by_checkpoint)
    counted = collected.get("element_breakdown") or {}
    parts = [
        part
        for part, key in (("mtp", "mtp_eh"), ("mtp_shared", "mtp_embed"), ("vision", "vision"))
        if counted.get(key)
    ]
    parts = added["parts"].get(slug, parts)
    if "no MTP in the count" in checkpoint["source"]:
        return [part for part in parts if not part.startswith("mtp")]
    return list(parts)


def _element_count(collected: Mapping[str, Any]) -> dict[str, Any]:
    check = collected.get("element_check") or {}
    difference = check.get("diff")
    if difference is None:
        return {"result": "not_published"}
    repository = check["hf_total_repo"]
    note = "" if repository == collected["hf_id"] else f"counted in {repository}"
    row = {"result": "exact" if difference == 0 else "differs", "difference": difference}
    return row | ({"note": note} if note else {})


def _name(hf_id: str) -> str:
    """A name for people: the repository's own, with spaces."""
    words = _NAME_PREFIX.sub("", hf_id.split("/")[1]).replace("_", "-").split("-")
    return " ".join(words)


def written(value: object, indent: str = "") -> str:
    """Write JSON with one entry a line, and short lists and tables on a single line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= _LINE or not isinstance(value, dict | list) or not value:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {written(each, inner)}" for key, each in value.items()]
        opening, closing = "{", "}"
    else:
        entries = [written(each, inner) for each in value]
        opening, closing = "[", "]"
    body = ",\n".join(inner + entry for entry in entries)
    return f"{opening}\n{body}\n{indent}{closing}"
