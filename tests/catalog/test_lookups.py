"""Finding models, checkpoints and cards by what people and logs call them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.catalogue import Catalogue
from app.catalog.gpus import gpus_logged_as
from app.catalog.model_search import find_model, nearest_models, nearest_names, search_models
from app.catalog.runs import RunsError, code_runs, expand_runs


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.3-70b",
        " LLAMA-3.3-70B ",
        "meta-llama/Llama-3.3-70B-Instruct",
        "META-LLAMA/llama-3.3-70b-instruct",
    ],
)
def test_a_model_is_found_by_slug_or_id(catalogue: Catalogue, name: str) -> None:
    """Slug and Hugging Face id find the model in any case and mean no checkpoint in particular."""
    found = find_model(catalogue.models, name)
    assert found is not None
    assert (found.model.slug, found.checkpoint) == ("llama-3.3-70b", None)


def test_the_id_of_a_checkpoint_finds_its_model(catalogue: Catalogue) -> None:
    """The name in a start log is often that of a checkpoint: model and checkpoint are found."""
    found = find_model(catalogue.models, "nvidia/llama-3.3-70b-instruct-fp8")
    assert found is not None
    assert found.model.slug == "llama-3.3-70b"
    assert found.checkpoint is not None
    assert found.checkpoint.hf_id == "nvidia/Llama-3.3-70B-Instruct-FP8"


def test_no_name_finds_no_model(catalogue: Catalogue) -> None:
    """A name nobody has, and no name at all, find nothing."""
    assert find_model(catalogue.models, "llama-3.3-71b") is None
    assert find_model(catalogue.models, "") is None


@pytest.mark.parametrize(
    ("slug", "wanted", "expected"),
    [
        ("llama-3.3-70b", "", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-3.3-70b", "bf16", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-3.3-70b", "fp8", "nvidia/Llama-3.3-70B-Instruct-FP8"),
        ("llama-3.3-70b", "FP8-dynamic", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"),
        ("llama-3.3-70b", "nvfp4", "nvidia/Llama-3.3-70B-Instruct-NVFP4"),
        ("llama-3.3-70b", "int4", "RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16"),
        ("llama-3.3-70b", "awq-int4", "casperhansen/llama-3.3-70b-instruct-awq"),
        (
            "llama-3.3-70b",
            "redhatai/llama-3.3-70b-instruct-fp8-BLOCK",
            "RedHatAI/Llama-3.3-70B-Instruct-FP8-block",
        ),
        ("qwen3-32b", "fp8", "Qwen/Qwen3-32B-FP8"),
        ("gpt-oss-120b", "", "openai/gpt-oss-120b"),
        ("gpt-oss-120b", "bf16", "unsloth/gpt-oss-120b-BF16"),
        ("deepseek-r1", "fp8", "deepseek-ai/DeepSeek-R1-0528"),
        ("qwen3-coder-30b-a3b", "int4", "cyankiwi/Qwen3-Coder-30B-A3B-Instruct-AWQ-4bit"),
    ],
)
def test_the_checkpoint_people_mean(
    catalogue: Catalogue, slug: str, wanted: str, expected: str
) -> None:
    """Maker's own first, then nvidia, RedHatAI, then by name; families stand for their kinds."""
    assert catalogue.models[slug].select(wanted)[0].hf_id == expected


def test_all_that_match_are_returned(catalogue: Catalogue) -> None:
    """What was not chosen is returned behind the chosen one, so that a page can offer it."""
    found = [each.hf_id for each in catalogue.models["llama-3.1-70b"].select("fp8")]
    assert found == [
        "nvidia/Llama-3.1-70B-Instruct-FP8",
        "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8",
        "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic",
    ]


@pytest.mark.parametrize("wanted", ["fp7", "mxfp8", "nvidia/Qwen3-32B-NVFP4"])
def test_no_checkpoint_is_made_up(catalogue: Catalogue, wanted: str) -> None:
    """A precision this model lacks, and another model's checkpoint, find nothing."""
    assert catalogue.models["llama-3.3-70b"].select(wanted) == ()


@pytest.mark.parametrize(
    ("logged", "slugs"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ["rtx-pro-6000-server"]),
        ("NVIDIA RTX Pro 6000 Blackwell DC-4-96Q (vGPU 4g.96gb)", ["rtx-pro-6000-server"]),
        ("NVIDIA H100 80GB HBM3", ["h100-80gb-hbm3"]),
        ("NVIDIA GB10 (DGX Spark)", ["gb10"]),
        ("NVIDIA H200", ["h200"]),
        ("NVIDIA A10", ["a10"]),
        ("MI300X", ["mi300x"]),
        ("H100-80G", ["h100-80gb-hbm3", "h100-pcie"]),
        ("H100", ["h100-80gb-hbm3", "h100-nvl", "h100-pcie"]),
        ("A100 40GB", ["a100-pcie-40gb", "a100-sxm4-40gb"]),
        (
            "NVIDIA RTX PRO 6000 Blackwell",
            ["rtx-pro-6000-max-q-workstation", "rtx-pro-6000-server", "rtx-pro-6000-workstation"],
        ),
        ("NVIDIA H800", []),
        ("", []),
    ],
)
def test_cards_are_found_by_logged_name(
    catalogue: Catalogue, logged: str, slugs: list[str]
) -> None:
    """The driver's name finds one card, a short name all it may mean, a strange one none."""
    assert [gpu.slug for gpu in gpus_logged_as(catalogue.gpus, logged)] == slugs


def test_every_card_is_found_by_its_own_names(catalogue: Catalogue) -> None:
    """A name that a card's file lists, and its slug, find that card and no other."""
    for gpu in catalogue.gpus.values():
        for name in (gpu.slug, *gpu.facts.log_names):
            assert gpus_logged_as(catalogue.gpus, name) == (gpu,), name


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("llama 3.3", "llama-3.3-70b"),
        ("llama33 70", "llama-3.3-70b"),
        ("Llama-3.3-70B-Instruct-FP8", "llama-3.3-70b"),
        ("gpt oss 120", "gpt-oss-120b"),
        ("glm5", "glm-5"),
        ("moonshot linear", "kimi-linear-48b-a3b"),
        ("qwen 3.5 9", "qwen3.5-9b"),
        ("70b meta", "llama-3.1-70b"),
    ],
)
def test_typing_finds_models(catalogue: Catalogue, typed: str, first: str) -> None:
    """What people type while searching puts the model they mean first."""
    assert search_models(catalogue.models, typed)[0].slug == first


def test_search_ranks_names_before_checkpoints(catalogue: Catalogue) -> None:
    """A model called so comes before one that only has a checkpoint called so; sizes ascend."""
    found = [model.slug for model in search_models(catalogue.models, "gpt", limit=3)]
    assert found[:2] == ["gpt-oss-20b", "gpt-oss-120b"]
    assert "gptq" in " ".join(
        checkpoint.hf_id.lower() for checkpoint in catalogue.models[found[2]].checkpoints
    )


def test_an_empty_search_lists_everything(catalogue: Catalogue) -> None:
    """Before anything is typed all models are there, and a limit is kept."""
    assert len(search_models(catalogue.models, "", limit=1000)) == len(catalogue.models)
    assert len(search_models(catalogue.models, " ", limit=7)) == 7
    assert search_models(catalogue.models, "???") == ()


@pytest.mark.parametrize(
    ("wrong", "first"),
    [
        ("lama-3.3-70b", "llama-3.3-70b"),
        ("meta-llama/Llama-3.2-70B-Instruct", "llama-3.3-70b"),
        ("qwen3-32", "qwen3-32b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b"),
    ],
)
def test_a_wrong_name_gets_suggestions(catalogue: Catalogue, wrong: str, first: str) -> None:
    """A misspelt or half a name is answered with the nearest models."""
    assert nearest_models(catalogue.models, wrong)[0].slug == first


def test_nothing_near_suggests_nothing(catalogue: Catalogue) -> None:
    """A name like no other gets no suggestion rather than a wrong one."""
    assert nearest_models(catalogue.models, "xxxxxxxx") == ()
    assert nearest_names(catalogue.gpus, "toaster") == ()
    assert nearest_names(catalogue.gpus, "RTX-PRO-6000-sever")[0] == "rtx-pro-6000-server"
    assert set(nearest_names(catalogue.gpus, "h100")) == {"h100-80gb-hbm3", "h100-nvl", "h100-pcie"}


@given(text=st.text(max_size=400))
def test_any_text_can_be_searched(catalogue: Catalogue, text: str) -> None:
    """No text a person can paste makes a look-up fail."""
    search_models(catalogue.models, text)
    nearest_models(catalogue.models, text)
    find_model(catalogue.models, text)
    gpus_logged_as(catalogue.gpus, text)


@given(st.lists(st.sampled_from(["full", "sliding", 0, 1, None]), max_size=80))
def test_lists_survive_being_coded(entries: list[object]) -> None:
    """Whatever a list holds, writing it as runs and reading it again gives the same list."""
    assert expand_runs({"key": code_runs(entries)}) == {"key": entries}


def test_a_rhythm_is_coded_short() -> None:
    """48 layers with a rhythm of four take one run; a list without rhythm stays a list."""
    assert code_runs(["a", "a", "a", "b"] * 12) == {"runs": [[12, ["a", "a", "a", "b"]]]}
    assert code_runs(["a"] * 5 + ["b"]) == ["a", "a", "a", "a", "a", "b"]


def test_the_place_of_a_bad_run_is_told() -> None:
    """A coded list that cannot be read is named with the table it stands in."""
    with pytest.raises(RunsError) as caught:
        expand_runs({"text_config": {"layer_types": {"runs": 3}}})
    assert caught.value.key == "text_config.layer_types"
