"""Cards of a collected `gpus.json` → `data/gpus/*.toml` (part of the catalogue import)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.tools.catalogue_sources import reworded, sureness

_FACTS = {
    "architecture": "architecture",
    "compute_capability": "compute_capability",
    "memory_gb": "memory_gb",
    "nvidia_smi_total_mib": "driver_memory_mib",
    "torch_total_gib": "total_memory_gib",
    "memory_bandwidth_gb_s": "memory_bandwidth_gb_s",
    "tdp_w": "tdp_watts",
}
_FLOATS = {"total_memory_gib", "memory_bandwidth_gb_s", "nvlink_gb_s"}


def import_gpus(source: Path, data: Path, additions: Mapping[str, Any]) -> int:
    """Write one TOML file per card of `source`; returns how many."""
    cards = json.loads(source.read_text(encoding="utf-8"))
    for card in cards:
        target = data / "gpus" / f"{card['slug']}.toml"
        target.write_text(_document(card, additions.get(card["slug"], {})), encoding="utf-8")
    return len(cards)


def _document(card: Mapping[str, Any], added: Mapping[str, Any]) -> str:
    facts = dict(_facts(card))
    expected = ["driver_memory_mib", "total_memory_gib", "memory_bandwidth_gb_s", "tdp_watts"]
    if card["vendor"] == "NVIDIA":
        expected.append("compute_capability")
    if facts["nvlink"]["value"]:
        expected.append("nvlink_gb_s")
    head = {
        "slug": card["slug"],
        "name": card["name"],
        "vendor": card["vendor"],
        "log_names": [card["name"], *card["aliases"], *added.get("log_names", [])],
        "form_factor": card["form_factor"],
        "integrated_memory": added.get("integrated_memory", False),
        "note": "; ".join(note for note in (card["notes"], card["note_src"]) if note),
        "unknown": [name for name in expected if name not in facts],
    }
    lines = [_assignment(key, value) for key, value in head.items() if value not in ("", False)]
    for name, fact in facts.items():
        lines += ["", f"[{name}]", *(_assignment(key, value) for key, value in fact.items())]
    return "\n".join(lines) + "\n"


def _facts(card: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for theirs, ours in _FACTS.items():
        value, source = card[theirs]["value"], card[theirs]["source"]
        if value is None or value == "n/a":
            continue
        name = "gfx_target" if str(value).startswith("gfx") else ours
        yield name, _fact(float(value) if name in _FLOATS else value, source)
    nvlink = card["nvlink"]
    yield "nvlink", _fact(nvlink["value"], nvlink["source"])
    if nvlink["value"] and nvlink["gb_s"]:
        yield "nvlink_gb_s", _fact(float(nvlink["gb_s"]), nvlink["source"])
    for kind in ("fp8", "fp4"):
        yield kind, _fact(card[f"{kind}_tensor_core"], card["tensor_core_source"])


def _fact(value: object, source: str) -> dict[str, Any]:
    return {"value": value, "sure": sureness(source), "source": reworded(source)}


def _assignment(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
