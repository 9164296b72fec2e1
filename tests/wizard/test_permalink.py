"""A link reproduces its answers."""

import json
from typing import Any
from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from app.core.units import AUTO_MAX_MODEL_LEN
from app.wizard.answers import Answers, parse_answers
from app.wizard.inputs import INPUTS, UNSURE, Input
from app.wizard.permalink import permalink, query_string
from app.wizard.readers import canonical_json

NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=40
).filter(lambda text: text.strip().lower() != UNSURE and text.strip() == text)
OBJECTS = st.dictionaries(
    st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=8), st.booleans()), max_size=4
).map(canonical_json)


def values(each: Input) -> st.SearchStrategy[Any]:
    """Generate any valid value of an input."""
    low, high = each.minimum or 0, each.maximum or 0
    match each.kind:
        case "text":
            return NAMES
        case "flag":
            return st.booleans()
        case "object":
            return OBJECTS
        case "decimal":
            return st.floats(low, high, allow_nan=False)
        case "length":
            return st.one_of(st.just(AUTO_MAX_MODEL_LEN), st.integers(int(low), int(high)))
        case _:
            return st.integers(int(low), int(high))


@st.composite
def all_answers(draw: st.DrawFn) -> Answers:
    """Generate answers with any subset of the inputs."""
    chosen = draw(st.sets(st.sampled_from(INPUTS), max_size=8))
    unsure = {each.name for each in chosen if each.unsure and draw(st.booleans())}
    given_values = {each.name: draw(values(each)) for each in chosen if each.name not in unsure}
    if "hf_config" not in given_values:
        given_values.pop("hf_quant_config", None)
    return Answers(**given_values, unsure=frozenset(unsure))


@given(all_answers(), st.sampled_from(["de", "en"]))
def test_every_link_reproduces_its_answers(answers: Answers, lang: str) -> None:
    """Reading a link gives back exactly what it was written from, in both languages."""
    query = query_string(answers, "2026-11")
    assert query is not None
    parsed = parse_answers(parse_qsl(query, strict_parsing=True), lang=lang)
    assert parsed.answers == answers
    assert parsed.problems == ()
    assert parsed.notices == ()
    assert parsed.data_version == "2026-11"


def test_links_are_short_and_stable() -> None:
    """Defaults are left out and the order is fixed, whatever the order of the answers."""
    answers = Answers(
        gpu="rtx-pro-6000-server", model="meta-llama/Llama-3.3-70B-Instruct", max_model_len=8192
    )
    assert permalink(answers, "en", "2026-11-29") == (
        "/en/workbench?model=meta-llama/Llama-3.3-70B-Instruct&gpu=rtx-pro-6000-server"
        "&max_model_len=8192&data=2026-11-29&v=1"
    )
    assert permalink(answers, "de") == (
        "/de/rechner?model=meta-llama/Llama-3.3-70B-Instruct&gpu=rtx-pro-6000-server"
        "&max_model_len=8192&v=1"
    )


def test_what_is_too_long_has_no_link() -> None:
    """A pasted config above 4 kB or a query above 8 kB gives no link rather than a broken one."""
    noise = canonical_json({f"{(i * 2654435761) % 2**32:x}": i for i in range(2000)})
    assert permalink(Answers(hf_config=noise), "en") is None
    assert permalink(Answers(hf_overrides=json.dumps({"a": "ä" * 3000})), "en") is None
