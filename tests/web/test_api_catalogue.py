"""The lists of the JSON API hold the catalogue, whole."""

import pytest

from tests.strict_client import StrictClient


@pytest.mark.slow
def test_every_listed_model_can_be_asked_for(client: StrictClient) -> None:
    """Slug and checkpoints of the list are accepted as inputs."""
    models = client.get("/api/v1/models").json()["models"]
    assert len(models) > 100
    llama = next(each for each in models if each["slug"] == "llama-3.3-70b")
    assert llama["architecture"] == "LlamaForCausalLM"
    assert llama["num_hidden_layers"] == 80
    assert "nvidia/Llama-3.3-70B-Instruct-FP8" in {each["hf_id"] for each in llama["checkpoints"]}
    for each in models[::10]:
        query = f"model={each['slug']}&gpu=h200-nvl&checkpoint={each['checkpoints'][0]['hf_id']}"
        assert client.get(f"/api/v1/sizing?{query}").status_code == 200


def test_cards_are_listed_with_what_is_known(client: StrictClient) -> None:
    """Unknown memory is null, not a guess."""
    gpus = {each["slug"]: each for each in client.get("/api/v1/gpus").json()["gpus"]}
    assert len(gpus) == 48
    assert gpus["rtx-pro-6000-server"]["driver_memory_mib"] == 97887
    assert gpus["rtx-pro-6000-server"]["compute_capability"] == "12.0"
    assert any(each["total_memory_bytes"] is None for each in gpus.values())


def test_slices_are_listed_apart_and_sized_by_name(client: StrictClient) -> None:
    """A slice is no card of the list, but is asked for like one."""
    slices = {each["slug"]: each for each in client.get("/api/v1/gpus").json()["slices"]}
    one = slices["h200-mig-3g.71gb"]
    assert (one["mig_of"], one["mig_profile"], one["mig_instances"]) == ("h200", "3g.71gb", 2)
    answer = client.get(f"/api/v1/sizing?model=llama-3.1-8b&gpu={one['slug']}&max_model_len=8192")
    assert answer.json()["verdict"]["fits"]
    near = client.get("/api/v1/sizing?model=llama-3.1-8b&gpu=h200-mig-3g.72gb")
    assert "h200-mig-3g.71gb" in near.text


def test_releases_are_listed_oldest_first(client: StrictClient) -> None:
    """The default release is among them."""
    listed = client.get("/api/v1/releases").json()
    versions = [each["version"] for each in listed["releases"]]
    assert listed["default"] in versions
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")])


@pytest.mark.parametrize("name", ["models", "gpus", "releases"])
def test_lists_name_the_version_of_the_data(client: StrictClient, name: str) -> None:
    """The same version stands in every list and in every permalink."""
    listed = client.get(f"/api/v1/{name}").json()
    answer = client.get("/api/v1/sizing?model=llama-3.1-8b&gpu=h200-nvl").json()
    assert f"data={listed['data_version']}" in answer["permalink"]


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_interface_is_described_for_people(client: StrictClient, language: str) -> None:
    """/api/docs is a page in the reader's language that names every input and an example."""
    page = client.get("/api/docs", headers={"Accept-Language": language})
    assert page.status_code == 200
    assert f'<html lang="{language}"' in page.text
    assert "available_kv_cache_memory_bytes" in page.text
    assert "/api/openapi.json" in page.text
    assert "GPU KV cache size: " in page.text
