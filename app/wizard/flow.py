"""Where the guided flow goes: next, back, and what must be asked before a page makes sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.wizard.answers import Answers, Problem
from app.wizard.steps import BY_CODE, QUESTIONS, STEPS, WizardStep

CHECK: Final = BY_CODE["check"]
RESULT: Final = BY_CODE["result"]


def open_steps(answers: Answers, problems: Sequence[Problem] = ()) -> tuple[WizardStep, ...]:
    """Return the questions still to be asked, in order.

    Those are required ones without an answer, and those whose answer is no longer one: a
    checkpoint of another model, a card that is not in the chosen server.
    """
    wrong = {each.field for each in problems}
    return tuple(
        each
        for each in QUESTIONS
        if not each.is_answered(answers) or not wrong.isdisjoint(each.fields)
    )


def redirect_from(
    step: WizardStep, answers: Answers, problems: Sequence[Problem] = ()
) -> WizardStep | None:
    """Return the open question before a step, to be asked first; None where it may be shown."""
    before = STEPS[: STEPS.index(step)]
    return next((each for each in open_steps(answers, problems) if each in before), None)


def next_step(
    step: WizardStep,
    answers: Answers,
    problems: Sequence[Problem] = (),
    *,
    from_check: bool = False,
) -> WizardStep:
    """Return the page after a step was answered.

    Somebody who changes one answer from the check page returns there, once whatever the change
    has opened is asked.
    """
    if from_check:
        return next(iter(open_steps(answers, problems)), CHECK)
    return STEPS[min(STEPS.index(step) + 1, len(STEPS) - 1)]


def previous_step(step: WizardStep) -> WizardStep | None:
    """Return the page the Back link leads to; None on the first."""
    index = STEPS.index(step)
    return STEPS[index - 1] if index else None


def progress(step: WizardStep) -> tuple[int, int]:
    """Return the number of a question and how many there are, from 1."""
    return min(STEPS.index(step) + 1, len(QUESTIONS)), len(QUESTIONS)
