"""The one public verb of the core: `size()`.

The types live in `request.py` and `result.py`; rooms outside the core import them from here.
Modules of the core that `size()` calls import them from there.
"""

from __future__ import annotations

from app.core.request import Measured, SizingRequest
from app.core.result import (
    Assumption,
    Cache,
    CacheGroup,
    MemoryTerm,
    Planning,
    Range,
    SizingResult,
)

__all__ = [
    "Assumption",
    "Cache",
    "CacheGroup",
    "Measured",
    "MemoryTerm",
    "Planning",
    "Range",
    "SizingRequest",
    "SizingResult",
]
