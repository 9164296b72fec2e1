"""CPU seconds of a call, free of what other tests left behind."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def cpu_seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """Least CPU seconds of some rounds.

    The garbage collector rests meanwhile: it would walk through all objects of all tests that ran
    before in this process, which says nothing about the call.
    """
    gc.collect()
    gc.disable()
    try:
        return min(_seconds(call) for _ in range(rounds))
    finally:
        gc.enable()


def _seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin
