"""Words of the flags table: what each flag does, what it costs, where vLLM does it."""

import pytest
from fastapi import FastAPI

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.core.what_if import SOURCES, what_if
from app.wizard.alternatives import alternatives_for
from app.wizard.answers import Answers
from app.wizard.sizing_request import to_request

# Together these have every row there is: dense, experts, pictures, states, drafts, a pair of cards.
CASES = (
    Answers(model="llama-3.3-70b", gpu="h200", tensor_parallel_size=2, max_model_len=8192),
    Answers(model="gemma-3-27b", gpu="h200", max_model_len=8192),
    Answers(model="qwen3-next-80b-a3b", gpu="b200", max_model_len=8192),
    Answers(model="deepseek-v3.2", gpu="b300-sxm6-ac", tensor_parallel_size=8, max_model_len=8192),
)


@pytest.fixture(scope="module")
def flags(app: FastAPI) -> frozenset[str]:
    """Return every flag that some case shows."""
    catalogue: Catalogue = app.state.catalogue
    found: set[str] = set()
    for answers in CASES:
        prepared = to_request(answers, catalogue)
        if prepared.request is None:
            continue
        checkpoints = alternatives_for(prepared, catalogue).checkpoints
        found |= {row.flag for row in what_if(size(prepared.request), checkpoints)}
    return frozenset(found)


def test_the_cases_show_every_flag_that_has_a_source(flags: frozenset[str]) -> None:
    """No row is without a source, and no source is without a row."""
    assert flags == SOURCES.keys()


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("words", ["flag_effect", "flag_price"])
def test_every_flag_has_its_words(
    app: FastAPI, flags: frozenset[str], language: str, words: str
) -> None:
    """One sentence on what it does and one on what it costs, in both languages."""
    environment = app.state.renderer.environments[language]
    macro = getattr(environment.get_template("result/flag_words.html").module, words)
    for flag in sorted(flags):
        text = str(macro(flag)).strip()
        assert text.endswith("."), flag
    assert str(macro("no_such_flag")).strip() == ""
