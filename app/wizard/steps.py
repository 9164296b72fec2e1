"""The questions of the guided flow, in their order, and the pages after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from app.wizard.answers import Answers
from app.wizard.inputs import LAYOUT_INPUTS

StepCode = Literal["model", "precision", "gpu", "layout", "context", "result", "check"]


@dataclass(frozen=True, slots=True)
class WizardStep:
    """One page of the flow.

    `fields` are the inputs it asks for (empty for the result and the check page). A required step
    is answered when one of `any_of` is; the others have a default that the result names.
    """

    code: StepCode
    fields: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()

    @property
    def is_question(self) -> bool:
        """True for pages that ask something."""
        return bool(self.fields)

    def is_answered(self, answers: Answers) -> bool:
        """True where what this page must know is there."""
        if not self.any_of:
            return True
        return any(
            getattr(answers, name) is not None or name in answers.unsure for name in self.any_of
        )


STEPS: Final[tuple[WizardStep, ...]] = (
    WizardStep(
        "model",
        ("model", "revision", "hf_config", "hf_quant_config", "assume_plain_decoder"),
        ("model", "hf_config"),
    ),
    WizardStep("precision", ("checkpoint", "kv_cache_dtype")),
    WizardStep(
        "gpu",
        ("gpu", "server", "gpu_total_memory_bytes", "other_processes_gib"),
        ("gpu", "server", "gpu_total_memory_bytes"),
    ),
    WizardStep("layout", LAYOUT_INPUTS),
    WizardStep(
        "context", ("max_model_len", "peak_requests", "mean_request_tokens", "p95_request_tokens")
    ),
    WizardStep("result"),
    WizardStep("check"),
)
BY_CODE: Final[Mapping[str, WizardStep]] = {each.code: each for each in STEPS}
QUESTIONS: Final = tuple(each for each in STEPS if each.is_question)
