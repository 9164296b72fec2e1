"""The guided flow asks what is missing, once, and returns where the person came from."""

import pytest

from app.wizard.answers import Answers, Problem
from app.wizard.flow import (
    next_step,
    open_steps,
    previous_step,
    progress,
    redirect_from,
)
from app.wizard.inputs import BY_NAME
from app.wizard.steps import BY_CODE, QUESTIONS, STEPS

ENOUGH = Answers(model="llama-3.3-70b", gpu="rtx-pro-6000-server")


def test_the_order_is_the_journey() -> None:
    """Model first, the check page last; each step leads to the one after it."""
    codes = [each.code for each in STEPS]
    assert codes == ["model", "precision", "gpu", "layout", "context", "result", "check"]
    walked = [STEPS[0]]
    while walked[-1].code != "check":
        walked.append(next_step(walked[-1], ENOUGH))
    assert walked == list(STEPS)
    assert next_step(STEPS[-1], ENOUGH) == STEPS[-1]


def test_back_leads_to_the_step_before() -> None:
    """The first step has no way back, every other one has."""
    assert previous_step(STEPS[0]) is None
    assert [previous_step(each) for each in STEPS[1:]] == list(STEPS[:-1])


def test_every_field_of_a_question_is_an_input() -> None:
    """Questions ask for inputs that exist, each for its own."""
    asked = [name for each in QUESTIONS for name in each.fields]
    assert len(asked) == len(set(asked))
    assert set(asked) <= BY_NAME.keys()


@pytest.mark.parametrize(
    ("step", "answers", "expected"),
    [
        ("result", Answers(), "model"),
        ("context", Answers(gpu="h200-nvl"), "model"),
        ("layout", Answers(model="x"), "gpu"),
        ("gpu", Answers(model="x"), None),
        ("result", ENOUGH, None),
        ("result", Answers(model="x", unsure=frozenset({"gpu"})), None),
        ("check", Answers(hf_config="{}", server="x"), None),
    ],
)
def test_skipping_ahead_leads_to_the_first_missing_answer(
    step: str, answers: Answers, expected: str | None
) -> None:
    """A page that lacks an earlier answer sends to that question; "I am not sure" is an answer."""
    found = redirect_from(BY_CODE[step], answers)
    assert (found.code if found else None) == expected


def test_a_change_from_the_check_page_returns_to_it() -> None:
    """Without anything newly open the check page is next."""
    assert next_step(BY_CODE["context"], ENOUGH, from_check=True).code == "check"


def test_what_a_change_opens_is_asked_first() -> None:
    """After another model the checkpoint of the old one is asked again before the check page."""
    problems = [Problem("checkpoint_not_of_model", "checkpoint", "a/b")]
    assert [each.code for each in open_steps(ENOUGH, problems)] == ["precision"]
    assert next_step(BY_CODE["model"], ENOUGH, problems, from_check=True).code == "precision"
    assert open_steps(ENOUGH) == ()


def test_progress_counts_questions_only() -> None:
    """Result and check page do not raise the count of questions."""
    assert progress(BY_CODE["model"]) == (1, 5)
    assert progress(BY_CODE["check"]) == (5, 5)
