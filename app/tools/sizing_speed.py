"""How long sizings take on this machine, beside a calibration loop of the same process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.catalog.catalogue import Catalogue, load_catalogue
from app.core.engine import EngineArgs
from app.core.layout import Layout
from app.core.request import SizingRequest
from app.core.sizing import size
from app.wizard.answers import DEFAULT_VLLM_VERSION

DATA: Final = Path(__file__).resolve().parents[2] / "data"
MAX_MODEL_LEN: Final = 8192
TENSOR_PARALLEL_SIZES: Final = (1, 2, 4, 8)
CALIBRATION_STEPS: Final = 1_000_000
ONE_SIZING: Final = "llama-3.3-70b"
REPEATS: Final = 2_000
ROUNDS: Final = 3


@dataclass(frozen=True)
class SizingSpeed:
    """Seconds of processor time: the best of three rounds each.

    `sizings` is how many the whole catalogue has: one checkpoint of every model, on every card, in
    every tensor-parallel size.
    """

    sizings: int
    catalogue_seconds: float
    one_seconds: float
    calibration_seconds: float

    @property
    def catalogue_of_calibration(self) -> float:
        """The whole catalogue in calibration loops."""
        return self.catalogue_seconds / self.calibration_seconds

    @property
    def one_of_calibration(self) -> float:
        """One sizing in calibration loops."""
        return self.one_seconds / self.calibration_seconds


def measure_sizings() -> SizingSpeed:
    """Size the whole catalogue warm, then one server again and again."""
    catalogue = load_catalogue(DATA)
    calibration = min(_calibration() for _ in range(ROUNDS))
    cases = tuple(_cases(catalogue))
    for case in cases:
        size(case)
    whole = min(_seconds(cases, 1) for _ in range(ROUNDS))
    one = next(
        case for case in cases if case.model is catalogue.models[ONE_SIZING].spec and size(case).ok
    )
    alone = min(_seconds((one,), REPEATS) for _ in range(ROUNDS)) / REPEATS
    calibration = min(calibration, *(_calibration() for _ in range(ROUNDS)))
    return SizingSpeed(len(cases), whole, alone, calibration)


def _cases(catalogue: Catalogue) -> Iterator[SizingRequest]:
    release, _ = catalogue.releases.release_for(DEFAULT_VLLM_VERSION)
    args = EngineArgs(max_model_len=MAX_MODEL_LEN)
    for model in catalogue.models.values():
        checkpoint = model.select()[0].checkpoint
        for gpu in catalogue.gpus.values():
            for width in TENSOR_PARALLEL_SIZES:
                layout = Layout(tensor_parallel_size=width)
                yield SizingRequest(model.spec, checkpoint, gpu.spec, release, layout, args)


def _seconds(cases: tuple[SizingRequest, ...], repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        for case in cases:
            size(case)
    return time.process_time() - started


def _calibration() -> float:
    """Additions in a plain loop: what this machine's Python does in that time."""
    started = time.process_time()
    total = 0
    for step in range(CALIBRATION_STEPS):
        total += step & 7
    return time.process_time() - started
