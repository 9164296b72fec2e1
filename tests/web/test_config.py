"""The page that takes a pasted config.json."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree.ElementTree import Element

import pytest
from fastapi import FastAPI

from app.catalog import hub
from app.catalog.catalogue import Catalogue
from tests.catalog.hub_server import COMMIT, HubHandler, running_hub
from tests.strict_client import StrictClient, parse_strictly

pytestmark = pytest.mark.slow

PATHS = {"de": "/de/config", "en": "/en/config"}
PLAIN: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
FP8 = {
    "producer": {"name": "modelopt"},
    "quantization": {
        "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"],
    },
}  # fmt: skip
UNKNOWN = {**PLAIN, "architectures": ["WonderForCausalLM"], "model_type": "wonder"}


def paste(
    client: StrictClient, config: str | Mapping[str, Any], language: str = "en", **more: str
) -> tuple[int, Element]:
    """Send the form as a browser does; return status and page."""
    text = config if isinstance(config, str) else json.dumps(config)
    fields = {"hf_config": text, **more}
    answer = client.post(
        PATHS[language], files={name: (None, value) for name, value in fields.items()}
    )
    return answer.status_code, parse_strictly(answer.text)


def text_of(tree: Element) -> str:
    """Return the text of a page on one line."""
    return " ".join("".join(tree.itertext()).split())


def link_to_workbench(tree: Element) -> str | None:
    """Return where "Size this model" leads."""
    hrefs = (each.get("href") or "" for each in tree.iter("a"))
    return next((href for href in hrefs if "spec=" in href), None)


def too_long() -> dict[str, Any]:
    """Return a config that no link can hold, whatever it is packed with."""
    chance = random.Random(0)  # noqa: S311 - no secret
    return {**PLAIN, "noise": [f"{chance.getrandbits(64):x}" for _ in range(1500)]}


def test_what_was_read_is_shown(client: StrictClient) -> None:
    """Architecture, layers by kind, bytes of a token, weights by part and what stays 16 bit."""
    status, tree = paste(client, PLAIN, hf_quant_config=json.dumps(FP8))
    text = text_of(tree)
    assert status == 200
    assert "Read: LlamaForCausalLM" in text
    assert "320.0 KiB in 16 bit; 160.0 KiB in fp8_e4m3" in text
    assert re.search(r"Full attention\s*80\s*8\s*128\s*.\s*4,096", text)
    assert "67.7 GiB" in text
    rows = {
        text_of(head): [text_of(cell) for cell in row.findall("td")]
        for row in tree.iter("tr")
        for head in row.findall("th")
    }
    assert rows["Output head"][0] == "bfloat16not quantised"
    assert rows["Feed-forward"][0].startswith("fp8")


def test_the_link_sizes_the_model(client: StrictClient) -> None:
    """The button leads to the workbench, which names the pasted model and its assumption."""
    _, tree = paste(client, PLAIN)
    link = link_to_workbench(tree)
    assert link is not None
    answer = client.get(f"{link}&tensor_parallel_size=2&max_model_len=8192")
    assert answer.status_code == 200
    text = text_of(parse_strictly(answer.text))
    assert "Pasted: LlamaForCausalLM" in text
    assert "The model comes from a pasted configuration." in text
    assert "8,192 tokens fit at the same time" in text


def test_a_link_brings_the_config_back(client: StrictClient) -> None:
    """The page opened with a link shows what was pasted, and reads it again."""
    _, tree = paste(client, PLAIN)
    query = dict(parse_qsl(urlsplit(link_to_workbench(tree) or "").query))
    page = parse_strictly(client.get(PATHS["de"], params=query).text)
    area = next(each for each in page.iter("textarea") if each.get("id") == "hf_config")
    assert json.loads(area.text or "") == PLAIN
    assert "Gelesen: LlamaForCausalLM" in text_of(page)


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ("", "Nothing was pasted"),
        ("{", "not a JSON object"),
        ("[1, 2]", "not a JSON object"),
        ("{" * 100_000, "not a JSON object"),
        ({**PLAIN, "hidden_size": -5}, "“hidden_size” is -5; it must be a number from 1 to"),
        ({**PLAIN, "num_hidden_layers": "many"}, "“num_hidden_layers” is many"),
        ({"architectures": ["LlamaForCausalLM"]}, "has no “"),
    ],
)
def test_problems_are_named_beside_their_field(
    client: StrictClient, pasted: str | dict[str, Any], words: str
) -> None:
    """What is wrong is said in the summary and beside the field, and what was pasted is kept."""
    status, tree = paste(client, pasted)
    assert status == 422
    assert (tree.findtext("head/title") or "").startswith("Error:")
    assert text_of(tree).count(words) == 2
    area = next(each for each in tree.iter("textarea") if each.get("id") == "hf_config")
    entered = pasted if isinstance(pasted, str) else json.dumps(pasted)
    assert (area.text or "") == entered


def test_an_unknown_architecture_waits_for_a_word(client: StrictClient) -> None:
    """It is named and not handled; once the assumption is confirmed it is, and stays named."""
    status, tree = paste(client, UNKNOWN)
    assert status == 200
    assert "The architecture “WonderForCausalLM” is not known here" in text_of(tree)
    assert link_to_workbench(tree) is None
    assert "Read:" not in text_of(tree)
    status, tree = paste(client, UNKNOWN, assume_plain_decoder="true")
    link = link_to_workbench(tree)
    assert status == 200
    assert "it is read as a plain decoder" in text_of(tree)
    assert link is not None
    assert "assume_plain_decoder=true" in link
    result = client.get(f"{link}&tensor_parallel_size=2&max_model_len=8192")
    assert "The architecture WonderForCausalLM is not known" in text_of(parse_strictly(result.text))


def test_without_the_word_the_workbench_refuses(client: StrictClient) -> None:
    """A link that lacks the confirmation gives the reason and the way to confirm, no figure."""
    _, tree = paste(client, UNKNOWN, assume_plain_decoder="true")
    link = (link_to_workbench(tree) or "").replace("&assume_plain_decoder=true", "")
    link = link.replace("assume_plain_decoder=true&", "")
    text = text_of(parse_strictly(client.get(link).text))
    assert "not known here yet" in text
    assert "Confirm an assumption" in text


def test_the_word_changes_nothing_for_a_known_architecture(client: StrictClient) -> None:
    """A confirmation beside a known architecture is no assumption."""
    _, tree = paste(client, PLAIN, assume_plain_decoder="true")
    assert "plain decoder" not in text_of(tree)


def test_too_long_for_a_link_is_sized_by_the_form(client: StrictClient) -> None:
    """Above 4 kB the page says that there is no permalink, and sizes the model itself."""
    status, tree = paste(client, too_long())
    assert status == 200
    assert "there is no permalink" in text_of(tree)
    assert link_to_workbench(tree) is None
    more = {"gpu": "h200-nvl", "tensor_parallel_size": "2", "max_model_len": "8k"}
    status, tree = paste(client, too_long(), **more)
    text = text_of(tree)
    assert "requests of 8,000 tokens fit at the same time" in text
    assert not [a for a in tree.iter("a") if (a.get("href") or "x").startswith(("?", "#layouts"))]


@pytest.mark.parametrize("language", ["de", "en"])
def test_whatever_is_pasted_is_shown_as_text(client: StrictClient, language: str) -> None:
    """Names from a config are never markup."""
    wild = {"architectures": ["<script>alert(1)</script>"], "model_type": "<b>"}
    _, tree = paste(client, wild, language)
    assert not [each for each in tree.iter("script") if "alert" in (each.text or "")]
    assert "<script>alert(1)</script>" in text_of(tree)


def test_more_than_a_megabyte_is_refused(client: StrictClient) -> None:
    """A body above 1 MiB is answered with the page for it."""
    status, _ = paste(client, "x" * (1 << 20))
    assert status == 413


def test_broken_forms_are_answered(client: StrictClient) -> None:
    """A body that is no form, an empty one and an unknown type are answered below 500."""
    broken = {"content-type": "multipart/form-data; boundary=x"}
    for headers, body in ((broken, b"garbage"), ({}, b""), ({"content-type": "text/x"}, b"{}")):
        assert 400 <= client.post(PATHS["en"], content=body, headers=headers).status_code < 500


def test_every_catalogue_config_can_be_pasted(client: StrictClient, app: FastAPI) -> None:
    """What the catalogue knows, pasted as a file, gives the catalogue's own figures."""
    catalogue: Catalogue = app.state.catalogue
    for slug in ("gpt-oss-120b", "deepseek-v3", "qwen3-next-80b-a3b", "gemma-3-27b", "qwen3-8b"):
        model = catalogue.models[slug]
        status, tree = paste(client, dict(model.config))
        assert status == 200
        assert f"Read: {model.spec.architecture}" in text_of(tree)


@pytest.fixture(scope="module")
def hub_address() -> Iterator[str]:
    """Run a hub on loopback for the tests that look something up."""
    with running_hub() as url:
        yield url


@pytest.fixture
def with_hub(
    make_client: Callable[..., StrictClient], hub_address: str, tmp_path: Path
) -> StrictClient:
    """Return a client of an instance that may ask the hub."""
    return make_client(hub_url=hub_address, data_dir=tmp_path)


def test_a_model_is_looked_up_and_pinned(with_hub: StrictClient) -> None:
    """What the hub has is read; the link holds repository, commit and config."""
    answer = with_hub.get(PATHS["en"], params={"hub": "acme/good", "max_model_len": "4096"})
    tree = parse_strictly(answer.text)
    assert answer.status_code == 200
    assert f"From acme/good on Hugging Face, at commit {COMMIT}" in text_of(tree)
    query = dict(parse_qsl(urlsplit(link_to_workbench(tree) or "").query))
    assert query["model"] == "acme/good"
    assert query["revision"] == COMMIT
    assert query["max_model_len"] == "4096"
    HubHandler.asked.clear()
    result = with_hub.get("/en/workbench", params={**query, "gpu": "h200-nvl"})
    text = text_of(parse_strictly(result.text))
    assert HubHandler.asked == []
    assert f"that of acme/good on Hugging Face, at commit {COMMIT}" in text
    assert f"vllm serve acme/good \\ --revision {COMMIT}" in text


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize(
    "name", ["gated", "nobody", "huge", "broken", "nested", "nocommit", "foreign", "circle", "busy"]
)
def test_every_failure_of_the_hub_is_said(with_hub: StrictClient, name: str, language: str) -> None:
    """Whatever the hub answers, the page says what happened and what to do instead."""
    answer = with_hub.get(PATHS[language], params={"hub": f"acme/{name}"})
    tree = parse_strictly(answer.text)
    said = next(text_of(each) for each in tree.iter("p") if each.get("id") == "hub-error")
    assert answer.status_code == 422
    assert len(said) > 40
    assert "config.json" in said or "org/mod" in said or name == "nobody"
    assert "cannot be used here" not in said


def test_a_slow_hub_is_given_up(with_hub: StrictClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that does not answer in time is not waited for."""
    monkeypatch.setattr(hub, "SECONDS_PER_ANSWER", 0.2)
    answer = with_hub.get(PATHS["en"], params={"hub": "acme/slow"})
    assert answer.status_code == 422
    assert "did not answer within" in text_of(parse_strictly(answer.text))


@pytest.mark.parametrize("name", ["../../etc/passwd", "http://169.254.169.254/x", "a/b/c", "x"])
def test_only_names_of_models_are_asked_for(with_hub: StrictClient, name: str) -> None:
    """Text that is no model's name never reaches the hub."""
    HubHandler.asked.clear()
    answer = with_hub.get(PATHS["en"], params={"hub": name})
    assert answer.status_code == 422
    assert HubHandler.asked == []


def test_without_a_hub_nobody_is_asked(client: StrictClient) -> None:
    """With the look-up off the page says so and offers the other way."""
    answer = client.get(PATHS["en"], params={"hub": "acme/good"})
    assert answer.status_code == 422
    assert "looks nothing up on Hugging Face" in text_of(parse_strictly(answer.text))


def test_a_catalogue_model_is_never_looked_up(with_hub: StrictClient) -> None:
    """An id that the catalogue knows leads to the workbench without asking anybody."""
    HubHandler.asked.clear()
    answer = with_hub.get(PATHS["en"], params={"hub": "meta-llama/Llama-3.3-70B-Instruct"})
    assert answer.status_code == 303
    assert urlsplit(answer.headers["location"]).path == "/en/workbench"
    with_hub.get("/en/workbench", params={"model": "llama-3.3-70b", "gpu": "h200-nvl"})
    assert HubHandler.asked == []


def test_the_workbench_offers_the_look_up(with_hub: StrictClient, client: StrictClient) -> None:
    """An unknown id in the model field gets a link to look it up, where that is possible."""
    params = {"model": "acme/wonder-7b", "gpu": "h200-nvl"}
    offered = "Look up acme/wonder-7b on Hugging Face"
    assert offered in text_of(parse_strictly(with_hub.get("/en/workbench", params=params).text))
    assert offered not in text_of(parse_strictly(client.get("/en/workbench", params=params).text))
