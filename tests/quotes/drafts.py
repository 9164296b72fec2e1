"""Figures of a real sizing, for quotes in tests."""

from __future__ import annotations

from fastapi import FastAPI

from app.quotes.quote import Sizing
from app.web.api_answer import answer, work_out
from app.wizard.answers import parse_answers
from app.wizard.sizing_request import to_request

ANSWERS = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "8192",
}


def llama_on_one_card(app: FastAPI) -> Sizing:
    """Return the frozen figures of Llama 3.3 70B on one card."""
    catalogue = app.state.catalogue
    answers = parse_answers(ANSWERS.items()).answers
    sized = work_out(to_request(answers, catalogue), answers, catalogue, "en")
    return Sizing(
        answers=ANSWERS,
        result=answer(sized).model_dump(mode="json"),
        permalink=f"https://sizing.example{sized.permalink}",
        data_version=catalogue.data_version,
    )
