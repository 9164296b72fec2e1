"""Usual mixes of requests, to begin with until one's own are measured.

The figures are assumptions of this site, not measurements: the page says so and shows each of them
for change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PresetCode = Literal["chat", "rag", "documents", "coding", "voice"]


@dataclass(frozen=True, slots=True)
class Preset:
    """One mix: lengths in tokens (prompt and answer together), generated share in percent.

    `shared_prefix_tokens` stand at the front of every request; `seconds` is how long one takes.
    """

    code: PresetCode
    mean_request_tokens: int
    p95_request_tokens: int
    answer_percent: int
    shared_prefix_tokens: int
    max_model_len: int
    seconds: int


PRESETS: Final = (
    Preset("chat", 2_000, 6_000, 20, 500, 16_384, 20),
    Preset("rag", 5_000, 8_000, 8, 800, 16_384, 20),
    Preset("documents", 40_000, 100_000, 3, 500, 131_072, 60),
    Preset("coding", 40_000, 110_000, 5, 8_000, 131_072, 60),
    Preset("voice", 1_500, 3_000, 10, 800, 8_192, 5),
)
BY_CODE: Final = {preset.code: preset for preset in PRESETS}
