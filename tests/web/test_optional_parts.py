"""Towers and drafts loaded or not, and what the catalogue does not know: visible on the pages."""

from __future__ import annotations

from typing import get_args
from xml.etree.ElementTree import Element

import pytest
from fastapi import FastAPI

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import QuantizationRow, WeightsRow
from app.catalog.models import ConfigSureness, Unknown
from app.main import ROOT
from app.web.locale import LANGUAGES, Language
from app.web.view_models.provenance import OF_NO_CONSEQUENCE
from tests.strict_client import StrictClient, parse_strictly

CARD = {"gpu": "h200-nvl", "max_model_len": "8192"}


def bench(client: StrictClient, **answers: str) -> Element:
    """Return the workbench with answers."""
    answer = client.get("/en/workbench", params={**CARD, **answers})
    assert answer.status_code == 200
    return parse_strictly(answer.text)


def names(tree: Element) -> set[str]:
    """Return the names of the fields a person sees."""
    return {
        each.get("name") or ""
        for kind in ("input", "select")
        for each in tree.iter(kind)
        if each.get("type") != "hidden"
    }


def text_of(tree: Element, name: str) -> str:
    """Return the text of the element with an id, on one line."""
    found = next(each for each in tree.iter() if each.get("id") == name)
    return " ".join("".join(found.itertext()).split())


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gemma-3-27b", {"language_model_only"}),
        ("qwen3-next-80b-a3b", {"speculative_config"}),
        ("llama-3.3-70b", set()),
    ],
)
def test_the_choice_is_shown_where_it_matters(
    client: StrictClient, model: str, fields: set[str]
) -> None:
    """A model with towers or a draft has the flag among the expert settings, no other has."""
    offered = names(bench(client, model=model, tensor_parallel_size="8"))
    assert offered & {"language_model_only", "speculative_config"} == fields


@pytest.mark.slow
def test_what_is_loaded_changes_the_weights(client: StrictClient) -> None:
    """With the tower left out, or the draft loaded, the weights on the card are others."""
    gemma = {"model": "gemma-3-27b"}
    whole = text_of(bench(client, **gemma), "memory")
    text_only = bench(client, **gemma, language_model_only="true")
    assert text_of(text_only, "memory") != whole
    box = next(
        each for each in text_only.iter("input") if each.get("name") == "language_model_only"
    )
    assert box.get("checked") is not None
    draft = '{"method":"mtp","num_speculative_tokens":2}'
    qwen = {"model": "qwen3-next-80b-a3b", "tensor_parallel_size": "2"}
    tree = bench(client, **qwen, speculative_config=draft)
    options = next(e for e in tree.iter("select") if e.get("name") == "speculative_config")
    assert [o.get("value") for o in options.iter("option") if o.get("selected") is not None] == [
        draft
    ]
    assert text_of(tree, "memory") != text_of(bench(client, **qwen), "memory")


def test_another_draft_is_kept(client: StrictClient) -> None:
    """A draft of another kind stays what it was, shown or carried along unseen."""
    draft = '{"method":"ngram","num_speculative_tokens":3}'
    for model in ("qwen3-next-80b-a3b", "llama-3.3-70b"):
        tree = bench(client, model=model, tensor_parallel_size="8", speculative_config=draft)
        values = [
            each.get("value")
            for kind in ("input", "option")
            for each in tree.iter(kind)
            if each.get("value") == draft
        ]
        assert values == [draft]


def test_unknown_facts_stand_among_the_assumptions(client: StrictClient, app: FastAPI) -> None:
    """What nobody knows of model and checkpoint is said, with where the rest is from."""
    catalogue: Catalogue = app.state.catalogue
    model = next(each for each in catalogue.models.values() if each.row.config_sure == "sibling")
    tree = bench(client, model=model.slug, tensor_parallel_size="8")
    said = text_of(tree, "assumptions")
    assert "that of a model with the same shapes" in said
    assert model.row.config_source in said


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_unknown_has_words(app: FastAPI, language: Language) -> None:
    """Each unknown fact in use is said in a sentence, not as a code."""
    catalogue: Catalogue = app.state.catalogue
    environment = app.state.renderer.environments[language]
    words = environment.get_template("result/provenance_words.html").module
    unknowns = [
        unknown
        for model in catalogue.models.values()
        for unknown in (
            *model.unknowns,
            *(Unknown(c) for e in model.checkpoints for c in e.unknowns),
        )
        if unknown.code not in OF_NO_CONSEQUENCE
    ]
    assert {each.code for each in unknowns} >= {"config", "weights_bytes", "quantization_assumed"}
    for each in unknowns:
        assert words.unknown_words(each).strip().endswith(".")


def test_every_degree_of_sureness_has_words() -> None:
    """Each way in which a fact of a model can be known is named in the template."""
    words = (ROOT / "templates/result/provenance_words.html").read_text(encoding="utf-8")
    kinds = {
        *get_args(ConfigSureness),
        *get_args(WeightsRow.model_fields["kind"].annotation),
        *get_args(QuantizationRow.model_fields["sure"].annotation),
    }
    assert {kind for kind in kinds if f'"{kind}"' not in words} == set()
