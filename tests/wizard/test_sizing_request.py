"""Answers and catalogue make one request, or every reason why not."""

import json

import pytest

from app.catalog.catalogue import Catalogue
from app.catalog.supposed_checkpoint import suppose_checkpoint
from app.core.request import SizingRequest
from app.core.units import GIB
from app.wizard.answers import Answers
from app.wizard.sizing_request import Prepared, to_request
from tests.configs import LLAMA_CONFIG

LLAMA = Answers(
    model="llama-3.3-70b", checkpoint="nvidia/Llama-3.3-70B-Instruct-FP8", gpu="rtx-pro-6000-server"
)


def requested(prepared: Prepared) -> SizingRequest:
    """Return the request, which must be there."""
    assert prepared.request is not None, prepared.problems
    return prepared.request


def codes(prepared: Prepared) -> list[tuple[str, str]]:
    """Return what is wrong, as field and code."""
    assert prepared.request is None
    return [(each.field, each.code) for each in prepared.problems]


def test_names_are_found_in_any_case(catalogue: Catalogue) -> None:
    """Slug, Hugging Face id and the id of a checkpoint find the same model."""
    ids = (
        "LLAMA-3.3-70B",
        "meta-llama/llama-3.3-70b-instruct",
        "NVIDIA/Llama-3.3-70B-Instruct-FP8",
    )
    requests = [requested(to_request(LLAMA.with_changes(model=each, checkpoint=None), catalogue))
                for each in ids]  # fmt: skip
    assert len({id(each.model) for each in requests}) == 1
    assert [each.checkpoint.hf_id for each in requests] == [
        "meta-llama/Llama-3.3-70B-Instruct",
        "meta-llama/Llama-3.3-70B-Instruct",
        "nvidia/Llama-3.3-70B-Instruct-FP8",
    ]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("fp8", "nvidia/Llama-3.3-70B-Instruct-FP8"),
        ("fp8-dynamic", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"),
        ("bf16", "meta-llama/Llama-3.3-70B-Instruct"),
        ("NVFP4", "nvidia/Llama-3.3-70B-Instruct-NVFP4"),
        ("int4", "RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16"),
    ],
)
def test_a_precision_picks_the_most_trusted_checkpoint(
    catalogue: Catalogue, wanted: str, chosen: str
) -> None:
    """The model's maker comes first, then nvidia, RedHatAI, then the alphabet."""
    prepared = to_request(LLAMA.with_changes(checkpoint=wanted), catalogue)
    assert requested(prepared).checkpoint.hf_id == chosen
    assert "checkpoint_chosen" in {each.code for each in prepared.assumptions}


def test_a_precision_nobody_published_is_supposed(catalogue: Catalogue) -> None:
    """Stored as most checkpoints of that precision are, and named as an assumption."""
    model = catalogue.models["qwen3.5-27b"]
    assert not model.select("nvfp4")
    prepared = to_request(Answers(model=model.slug, checkpoint="nvfp4", gpu="h200-nvl"), catalogue)
    checkpoint = requested(prepared).checkpoint
    assert checkpoint.precision == "nvfp4"
    assert dict(checkpoint.quantization.schemes)["mlp"] == "nvfp4"
    supposed = next(each for each in prepared.assumptions if each.code == "checkpoint_supposed")
    assert dict(supposed.values)["like"] > 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("precision", "kind"), [("int4", "int4-w4a16"), ("fp8", "fp8-dynamic"), ("bf16", "bf16")]
)
def test_every_precision_can_be_supposed_for_experts(
    catalogue: Catalogue, precision: str, kind: str
) -> None:
    """A model with experts follows others with experts; bf16 is no quantisation at all."""
    published = (each for model in catalogue.models.values() for each in model.checkpoints)
    supposed = suppose_checkpoint(
        precision, published, has_experts=True, includes=frozenset({"mtp"})
    )
    assert supposed is not None
    assert supposed.checkpoint.precision == kind
    assert supposed.checkpoint.includes == {"mtp"}
    assert bool(supposed.checkpoint.quantization.schemes) == (kind != "bf16")
    assert suppose_checkpoint("fp7", (), has_experts=True, includes=frozenset()) is None


def test_every_problem_is_named(catalogue: Catalogue) -> None:
    """A wrong model does not hide a wrong card, server, release and cache dtype."""
    prepared = to_request(
        Answers(model="x", gpu="y", vllm_version="z", kv_cache_dtype="q"), catalogue
    )
    assert codes(prepared) == [
        ("model", "unknown_model"),
        ("gpu", "unknown_gpu"),
        ("vllm_version", "unknown_release"),
        ("kv_cache_dtype", "unknown_value"),
    ]


def test_a_server_brings_its_card(catalogue: Catalogue) -> None:
    """The card of a server need not be named; another card beside it is a contradiction."""
    server = LLAMA.with_changes(gpu=None, server="4x-h200-nvl")
    assert requested(to_request(server, catalogue)).gpu.slug == "h200-nvl"
    wrong = server.with_changes(gpu="rtx-pro-6000-server")
    assert codes(to_request(wrong, catalogue)) == [("gpu", "gpu_not_in_server")]


def test_a_layout_beyond_the_server_says_how_many_servers(catalogue: Catalogue) -> None:
    """Eight cards on servers of four are two servers, named as an assumption."""
    answers = LLAMA.with_changes(server="4x-rtx-pro-6000-server", replicas=8)
    assumptions = {
        each.code: dict(each.values) for each in to_request(answers, catalogue).assumptions
    }
    assert assumptions["servers_needed"] == {"servers": 2, "cards": 8}


def test_a_card_without_known_memory_asks_for_it(catalogue: Catalogue) -> None:
    """A card whose memory no source gives needs it as an input, or a given cache memory."""
    unknown = [
        each.slug
        for each in catalogue.gpus.values()
        if each.spec.driver_memory_mib is None and each.spec.total_memory_bytes is None
    ]
    for slug in unknown:
        answers = LLAMA.with_changes(gpu=slug)
        assert codes(to_request(answers, catalogue)) == [("gpu", "gpu_memory_unknown")]
        given = answers.with_changes(gpu_total_memory_bytes=80 * GIB)
        assert requested(to_request(given, catalogue)).gpu.slug == slug


def test_measured_terms_arrive_in_bytes(catalogue: Catalogue) -> None:
    """GiB of a start log become bytes."""
    answers = LLAMA.with_changes(measured_weights_gib=67.7, measured_cudagraph_gib=0.5)
    measured = requested(to_request(answers, catalogue)).measured
    assert measured.weights_bytes == round(67.7 * GIB)
    assert measured.cudagraph_bytes == GIB // 2
    assert measured.non_torch_bytes is None


def test_unsure_layouts_take_the_fewest_cards_that_fit(catalogue: Catalogue) -> None:
    """BF16 weights of 131 GiB need two cards of 96 GB; the layout says so, and is named."""
    answers = LLAMA.with_changes(
        checkpoint="bf16", max_model_len=8192, unsure=frozenset({"tensor_parallel_size"})
    )
    prepared = to_request(answers, catalogue)
    assert requested(prepared).layout.tensor_parallel_size == 2
    assert prepared.answers.tensor_parallel_size == 2
    assert prepared.answers.unsure == frozenset()


def test_a_pasted_config_is_a_model(catalogue: Catalogue) -> None:
    """A config.json gives a request without an entry of the catalogue, and one spec per text."""
    answers = Answers(hf_config=json.dumps(LLAMA_CONFIG), gpu="h200-nvl")
    first, second = (requested(to_request(answers, catalogue)) for _ in range(2))
    assert first.model is second.model
    assert first.model.num_hidden_layers == 32
    assert first.checkpoint.hf_id == ""


def test_a_pasted_quantisation_is_read(catalogue: Catalogue) -> None:
    """The block inside the config, or the file beside it, decides how the weights are stored."""
    inside = {**LLAMA_CONFIG, "quantization_config": {"quant_method": "fp8"}}
    beside = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    first = to_request(Answers(hf_config=json.dumps(inside), gpu="h200-nvl"), catalogue)
    second = to_request(
        Answers(
            hf_config=json.dumps(LLAMA_CONFIG),
            hf_quant_config=json.dumps(beside),
            gpu="h200-nvl",
        ),
        catalogue,
    )
    assert requested(first).checkpoint.quantization.method == "fp8"
    assert requested(second).checkpoint.kv_cache_scheme == "fp8_e4m3"
    unknown = {**LLAMA_CONFIG, "quantization_config": {"quant_method": "nobodys"}}
    third = to_request(Answers(hf_config=json.dumps(unknown), gpu="h200-nvl"), catalogue)
    assert third.reason is not None
    assert third.reason.code == "quantization_not_supported"


def test_a_pasted_config_beside_a_name_is_a_contradiction(catalogue: Catalogue) -> None:
    """Two models at once are one too many."""
    answers = LLAMA.with_changes(hf_config=json.dumps(LLAMA_CONFIG))
    assert codes(to_request(answers, catalogue)) == [("model", "pasted_and_named")]


def test_an_unknown_architecture_is_a_reason_not_a_problem(catalogue: Catalogue) -> None:
    """Nobody mistyped anything: the answer is that this site cannot size it, by name."""
    config = {**LLAMA_CONFIG, "architectures": ["NobodyForCausalLM"], "model_type": "nobody"}
    prepared = to_request(Answers(hf_config=json.dumps(config), gpu="h200-nvl"), catalogue)
    assert prepared.request is None
    assert prepared.problems == ()
    assert prepared.reason is not None
    assert prepared.reason.code == "architecture_unknown"
    assert ("architecture", "NobodyForCausalLM") in prepared.reason.numbers


def test_overrides_are_laid_over_the_config(catalogue: Catalogue) -> None:
    """`hf_overrides` changes the model that is sized, without touching the catalogue's."""
    overrides = json.dumps({"max_position_embeddings": 16384})
    changed = requested(to_request(LLAMA.with_changes(hf_overrides=overrides), catalogue))
    plain = requested(to_request(LLAMA, catalogue))
    assert dict(changed.model.length.keys)["max_position_embeddings"] == 16384
    assert dict(plain.model.length.keys)["max_position_embeddings"] == 131072


def test_memory_of_other_processes_reaches_the_request(catalogue: Catalogue) -> None:
    """GiB of each card become bytes; by default the card is vLLM's alone."""
    given = LLAMA.with_changes(other_processes_gib=1.5)
    assert requested(to_request(given, catalogue)).other_processes_bytes == 3 * GIB // 2
    assert requested(to_request(LLAMA, catalogue)).other_processes_bytes == 0
