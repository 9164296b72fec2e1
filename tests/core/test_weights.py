"""Weights from shapes: what vLLM's own code allocates, what makers publish, what logs say."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from app.catalog.hf_config import read_config
from app.core import parameters
from app.core.checkpoint import Checkpoint, Quantization
from app.core.engine import EngineArgs, SpeculativeConfig
from app.core.engine_defaults import resolve_engine_args
from app.core.layout import Layout
from app.core.reasons import Refusal
from app.core.request import SizingRequest
from app.core.units import GIB
from app.core.weights import (
    checkpoint_bytes,
    parameter_bytes_per_rank,
    weights_bytes_per_rank,
)
from tests.core.oracle import OracleCase, cases
from tests.shipped import catalogue

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PP2 = Layout(pipeline_parallel_size=2)
TP8, TP16 = Layout(tensor_parallel_size=8), Layout(tensor_parallel_size=16)


def request(
    slug: str,
    hf_id: str = "",
    gpu: str = "h100-80gb-hbm3",
    version: str = "0.32.0",
    layout: Layout | None = None,
) -> SizingRequest:
    """Ask for a checkpoint of the catalogue (the model's own where none is named)."""
    model = catalogue().models[slug]
    wanted = hf_id or model.hf_id
    found = next(each for each in model.checkpoints if each.hf_id == wanted)
    release, _ = catalogue().releases.release_for(version)
    return SizingRequest(
        model=model.spec,
        checkpoint=found.checkpoint,
        gpu=catalogue().gpus[gpu].spec,
        release=release,
        layout=layout or Layout(),
    )


def loaded(asked: SizingRequest) -> tuple[int, ...]:
    """Return what each stage's ranks hold once loaded."""
    return weights_bytes_per_rank(asked, resolve_engine_args(asked))


def with_args(asked: SizingRequest, args: EngineArgs) -> SizingRequest:
    """Ask the same with engine arguments."""
    return replace(asked, engine_args=args)


def weight_cases(file: str = "oracle_cases.json") -> list[OracleCase]:
    """Return the starts whose weights vLLM's code worked out."""
    compared = (case for case in cases(file) if not case.left_out)
    return [case for case in compared if "weights_bytes_per_rank" in case.expected]


def error_of(case: OracleCase) -> float:
    """Largest share by which our weights of a stage differ from vLLM's."""
    ours = parameter_bytes_per_rank(case.request, resolve_engine_args(case.request))
    theirs = case.expected["weights_bytes_per_rank"]
    theirs = theirs if isinstance(theirs, list) else [theirs]
    return float(max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True)))


def test_weights_of_every_oracle_case_agree_with_vllm() -> None:
    """Parameters and buffers per rank are within 0.06 % of vLLM's own on every published case."""
    errors: dict[str, list[float]] = defaultdict(list)
    for case in weight_cases():
        errors[case.request.model.architecture].append(error_of(case))
    for architecture, found in sorted(errors.items()):
        print(f"\n  {len(found):>4}  {max(found):8.4%}  {architecture}", end="")  # noqa: T201
    assert sum(map(len, errors.values())) == 511
    assert max(max(found) for found in errors.values()) < 0.0006


@pytest.mark.slow
def test_weights_of_the_blind_cases_agree_with_vllm() -> None:
    """Within 0.2 % wherever no reason stands beside the case; where one stands, they are not."""
    asked = weight_cases("blind_cases.json")
    errors = {case.name: error_of(case) for case in asked}
    assert len(errors) > 500
    assert {case.name for case in asked if case.weights_differ} == {
        name for name, error in errors.items() if error > 0.002
    }


def test_weights_of_the_whole_catalogue_agree_with_vllm() -> None:
    """Two and eight cards and two stages: 253 more answers of vLLM's code, within 0.11 %."""
    golden = json.loads((GOLDEN / "weights_generated.json").read_text(encoding="utf-8"))
    for slug, tensor_parallel, pipeline, theirs in golden["rows"]:
        layout = Layout(tensor_parallel_size=tensor_parallel, pipeline_parallel_size=pipeline)
        model = catalogue().models[slug]
        asked = replace(request(slug, layout=layout), checkpoint=Checkpoint(model.hf_id, "16 bit"))
        ours = parameter_bytes_per_rank(asked, resolve_engine_args(asked))
        error = max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True))
        assert error < 0.0011, (slug, layout, error)
    assert len(golden["rows"]) == 253


def test_weights_without_expert_padding_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: gpt-oss without its kernels' padding misses by more than 5 %."""
    case = next(each for each in weight_cases() if each.name == "a100-002")
    assert error_of(case) < 0.0006
    monkeypatch.setattr(parameters, "pad_expert", lambda share, _sharding, _padding: share)
    ours = sum(
        parameter.created_bytes
        for parameter in parameters.rank_parameters(
            case.request.model,
            case.request.checkpoint.quantization,
            case.request.layout,
            parameters.Card("before_ada", case.request.release, "bfloat16"),
            frozenset({"model", "runtime"}),
        )
    )
    assert ours / case.expected["weights_bytes_per_rank"] < 0.95


def test_llama_70b_fp8_is_67_67_gib_on_disk_and_67_70_loaded() -> None:
    """The vendor's worked example comes out of the shapes alone."""
    asked = request("llama-3.3-70b", "nvidia/Llama-3.3-70B-Instruct-FP8")
    assert round(checkpoint_bytes(asked.model, asked.checkpoint) / GIB, 2) == 67.67
    assert round(loaded(asked)[0] / GIB, 2) == 67.70


def test_every_published_size_is_met() -> None:
    """Each size that somebody published is met within 0.1 %, files' headers left out."""
    sizes = json.loads((GOLDEN / "weights_published.json").read_text(encoding="utf-8"))
    for row in sizes["checkpoints"]:
        asked = request(row["model"], row["hf_id"])
        ours = checkpoint_bytes(asked.model, asked.checkpoint)
        assert abs(ours / row["bytes"] - 1) < 0.001, row["hf_id"]
    assert len(sizes["checkpoints"]) > 10


def test_every_counted_size_of_the_catalogue_is_met() -> None:
    """Each size in the data, published or counted from elements, is met within 0.02 %."""
    checked = 0
    for model in catalogue().models.values():
        for each in model.checkpoints:
            known = each.checkpoint.weights_bytes
            if known:
                ours = checkpoint_bytes(model.spec_of(each.hf_id), each.checkpoint)
                assert abs(ours / known - 1) < 0.0002, each.hf_id
                checked += 1
    assert checked > 190


def logged_start(row: dict[str, Any]) -> SizingRequest:
    """Ask for what a logged start had: a model of the catalogue, or one given by its config."""
    config = row.get("config") or dict(catalogue().models[row["model"]].config)
    model = read_config({**config, **row.get("config_changes", {})})
    if "quantization" in row:
        schemes = tuple(row["quantization"].items())
        checkpoint = Checkpoint(row["hf_id"], "as logged", Quantization(None, schemes))
    else:
        checkpoint = request(row["model"], row["hf_id"]).checkpoint
    args = dict(row["engine_args"])
    if "speculative_config" in args:
        args["speculative_config"] = SpeculativeConfig(*args["speculative_config"])
    release, _ = catalogue().releases.release_for(row["release"])
    return SizingRequest(
        model=model,
        checkpoint=checkpoint,
        gpu=catalogue().gpus[row["gpu"]].spec,
        release=release,
        layout=Layout(**row["layout"]),
        engine_args=EngineArgs(**args),
    )


@pytest.mark.slow
def test_logged_sizes_are_met() -> None:
    """Of the sizes that logs print the median is within 0.05 %, six of seven within 1 %."""
    rows = json.loads((GOLDEN / "weights_logged.json").read_text(encoding="utf-8"))["rows"]
    errors = []
    for row in rows:
        error = abs(max(loaded(logged_start(row))) / GIB / row["gib"] - 1)
        errors.append(error)
        assert (error > 0.01) == bool(row["miss"]), (row["hf_id"], error)
    print(f"\n  {len(errors)} sizes, median {median(errors):.3%}")  # noqa: T201 - for `pytest -s`
    assert len(errors) == 41
    assert median(errors) < 0.0005
    assert sum(error <= 0.01 for error in errors) / len(errors) > 0.85


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_pipeline_stages_together_hold_every_layer_once(stages: int) -> None:
    """Stages add up to the model; only what vLLM repeats (rotary table) is more than once."""
    whole = request("llama-3.3-70b")
    split = replace(whole, layout=Layout(pipeline_parallel_size=stages))
    sizes = parameter_bytes_per_rank(split, resolve_engine_args(split))
    rotary = 131_072 * 128 * 2
    once = parameter_bytes_per_rank(whole, resolve_engine_args(whole))[0] - rotary
    assert sum(size - rotary for size in sizes) == once
    assert len(sizes) == stages


def test_a_tied_embedding_is_held_by_the_first_and_the_last_stage() -> None:
    """Qwen3-4B ties its head: with two stages both hold the one table."""
    whole, split = request("qwen3-4b"), request("qwen3-4b", layout=PP2)
    table, rotary = 151_936 * 2560 * 2, 40_960 * 128 * 2
    once = parameter_bytes_per_rank(whole, resolve_engine_args(whole))[0]
    twice = sum(parameter_bytes_per_rank(split, resolve_engine_args(split)))
    assert twice - once == table + rotary


def test_drafts_are_loaded_with_speculative_decoding_only() -> None:
    """DeepSeek-V3's draft layer takes 2.1 GB more on each of 8 ranks, copies are shared."""
    plain = request("deepseek-v3", layout=TP8)
    draft = with_args(plain, EngineArgs(speculative_config=SpeculativeConfig("mtp", 1)))
    assert 1.5e9 < loaded(draft)[0] - loaded(plain)[0] < 2.5e9
    bare = replace(draft, checkpoint=replace(draft.checkpoint, includes=frozenset()))
    assert loaded(bare) == loaded(plain)


def test_a_vision_tower_is_left_out_on_request() -> None:
    """`--language-model-only` saves Qwen3.5-27B its 0.9 GB tower."""
    asked = request("qwen3.5-27b")
    saved = loaded(asked)[0] - loaded(with_args(asked, EngineArgs(language_model_only=True)))[0]
    assert 0.85e9 < saved < 1.0e9


def test_offloading_takes_exactly_what_was_asked_off_the_card() -> None:
    """`--cpu-offload-gb 10` frees 10 GiB a rank, and never more than there is."""
    asked = request("qwen3-8b")
    assert (
        loaded(asked)[0] - loaded(with_args(asked, EngineArgs(cpu_offload_gb=10.0)))[0] == 10 * GIB
    )
    assert loaded(with_args(asked, EngineArgs(cpu_offload_gb=100.0))) == (0,)


def test_lora_buffers_grow_with_adapters_and_rank() -> None:
    """Twice the rank is twice the buffer; none without `--enable-lora`."""
    asked = request("llama-3.1-8b")
    plain = loaded(asked)[0]
    small = loaded(with_args(asked, EngineArgs(enable_lora=True, max_lora_rank=16)))[0] - plain
    large = (
        loaded(with_args(asked, EngineArgs(enable_lora=True, max_lora_rank=32, max_loras=2)))[0]
        - plain
    )
    assert small > 80_000_000
    assert large == 4 * small


def test_absorbed_projections_are_counted_once_loaded() -> None:
    """DeepSeek-V3 FP8 keeps 255.9 MB of its MLA up-projection twice on each of 8 ranks."""
    asked = request("deepseek-v3", layout=TP8)
    plain = replace(asked, checkpoint=replace(asked.checkpoint, quantization=Quantization()))
    card = parameters.Card("hopper", asked.release, "bfloat16")
    kept = {
        each.checkpoint.precision: sum(
            parameter.absorbed_bytes
            for parameter in parameters.rank_parameters(
                each.model,
                each.checkpoint.quantization,
                each.layout,
                card,
                frozenset({"model"}),
            )
        )
        for each in (asked, replace(plain, checkpoint=replace(plain.checkpoint, precision="bf16")))
    }
    assert kept == {asked.checkpoint.precision: 255_852_544, "bf16": 0}


@pytest.mark.parametrize(("version", "cards", "share"), [("0.32.0", 16, 48), ("0.20.0", 4, 192)])
def test_fp8_experts_that_do_not_split_are_refused(version: str, cards: int, share: int) -> None:
    """Before 0.29.0 a share of an expert holds whole blocks; later blocks are made finer."""
    layout = Layout(tensor_parallel_size=cards)
    asked = request("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-FP8", version=version, layout=layout)
    with pytest.raises(Refusal) as caught:
        loaded(asked)
    assert caught.value.reason.code == "expert_split_not_supported"
    assert caught.value.reason.vllm_error == (
        f"The output_size of gate's and up's weight = {share} is not divisible by weight "
        "quantization block_n = 128."
    )


def test_finer_blocks_are_accepted_from_0_29() -> None:
    """The same experts over four cards start on 0.29.0."""
    layout = Layout(tensor_parallel_size=4)
    asked = request("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-FP8", version="0.29.0", layout=layout)
    assert loaded(asked)[0] > 7 * GIB


def test_fp8_blocks_of_a_dense_model_are_checked() -> None:
    """Qwen3-32B-FP8 over 16 cards would cut a block of its MLP: vLLM's text says so."""
    asked = request("qwen3-32b", "Qwen/Qwen3-32B-FP8", layout=TP16)
    with pytest.raises(Refusal) as caught:
        loaded(asked)
    assert caught.value.reason.code == "quantization_not_supported"
    assert "input_size_per_partition = 1600" in caught.value.reason.vllm_error


def test_an_old_card_is_refused_for_a_method_it_cannot_run() -> None:
    """MXFP4 needs compute capability 8.0; a T4 has 7.5."""
    asked = request("gpt-oss-20b", gpu="t4")
    with pytest.raises(Refusal) as caught:
        loaded(asked)
    assert "Minimum capability: 80. Current capability: 75." in caught.value.reason.vllm_error


def test_mamba_groups_that_do_not_split_are_refused() -> None:
    """Nemotron-3 Nano has 8 Mamba groups: 16 cards are refused."""
    asked = request("nemotron-3-nano-30b-a3b", layout=TP16)
    with pytest.raises(Refusal) as caught:
        loaded(asked)
    assert caught.value.reason.numbers[0] == ("num_groups", 8)
