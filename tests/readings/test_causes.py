"""Likely causes of a difference: each is found where it is made to happen, and nowhere else."""

import pytest

from app.readings.memory_causes import Cause
from tests.readings.told_starts import LLAMA, read, sized, text_of

OPEN = {"vllm_version": "0.25.1", "max_model_len": "32768"}
GPT_OSS = {**OPEN, "model": "gpt-oss-20b", "gpu": "h100-80gb-hbm3"}
QWEN = {**OPEN, "model": "qwen3.5-27b", "gpu": "h100-80gb-hbm3", "vllm_version": "0.32.0"}
SHARED = {**LLAMA, "gpu": "gb10", "vllm_version": "0.32.0"}
TWO = {**LLAMA, "tensor_parallel_size": "2"}
EAGER = {**LLAMA, "enforce_eager": "true"}
V1 = {**GPT_OSS, "model": "llama-3.1-8b", "vllm_version": "0.20.2"}
DRAFTS = {"speculative_config": '{"method":"mtp","num_speculative_tokens":1}'}
FP8_FILES = {"checkpoint": "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8"}


def causes(text: str, **chosen: str) -> dict[str, Cause]:
    """Return the cause of every term that differs; a cause stands nowhere else."""
    compared = read(text, **chosen).compared
    assert {"weights", "kv_cache_size_tokens", "max_concurrency"} <= {
        term.term for term in compared
    }
    assert all(term.agrees == (term.likely_cause is None) for term in compared)
    return {term.term: term.likely_cause for term in compared if term.likely_cause is not None}


@pytest.mark.parametrize("server", [LLAMA, GPT_OSS, QWEN, SHARED, TWO, EAGER, V1])
def test_a_server_that_is_what_it_says_differs_nowhere(server: dict[str, str]) -> None:
    """The control: a log as the estimate expects it has no cause to look for."""
    assert causes(text_of(server)) == {}


@pytest.mark.parametrize(
    ("truth", "said", "found"),
    [
        (
            {**QWEN, **DRAFTS},
            QWEN,
            {
                "weights": Cause("draft_weights"),
                "kv_cache_size_tokens": Cause("draft_layers"),
                "max_concurrency": Cause("draft_layers"),
            },
        ),
        ({**QWEN, "language_model_only": "true"}, QWEN, {"weights": Cause("towers_left_out")}),
        (
            {**GPT_OSS, "disable_hybrid_kv_cache_manager": "true"},
            GPT_OSS,
            dict.fromkeys(("kv_cache_size_tokens", "max_concurrency"), Cause("hybrid_manager_off")),
        ),
        (
            GPT_OSS,
            {**GPT_OSS, "disable_hybrid_kv_cache_manager": "true"},
            dict.fromkeys(("kv_cache_size_tokens", "max_concurrency"), Cause("hybrid_manager_on")),
        ),
        *(
            (
                {**LLAMA, "gpu": "b200", "kv_cache_dtype": dtype},
                {**LLAMA, "gpu": "b200"},
                dict.fromkeys(
                    ("kv_cache_size_tokens", "max_concurrency"),
                    Cause("cache_dtype", {"kv_cache_dtype": dtype}),
                ),
            )
            for dtype in ("fp8", "nvfp4")
        ),
        (
            {**GPT_OSS, "vllm_version": "0.32.0"},
            GPT_OSS,
            dict.fromkeys(
                ("kv_cache_size_tokens", "max_concurrency"),
                Cause("other_release", {"vllm_version": "0.33.0"}),
            ),
        ),
    ],
)
def test_a_server_that_is_another_is_found_out(
    truth: dict[str, str], said: dict[str, str], found: dict[str, Cause]
) -> None:
    """Started with one flag and written down without it: that flag is named, and no other."""
    assert causes(text_of(truth, said)) == found


def test_other_files_are_named_by_their_size() -> None:
    """A log of 8-bit files under the name of the 16-bit ones: files of that size are named."""
    found = causes(text_of({**LLAMA, **FP8_FILES}, LLAMA))
    assert set(found) == {"weights", "available_kv_cache"}
    assert found["weights"].code == "other_checkpoint"
    named = str(found["weights"].numbers["checkpoint"])
    printed, other = (
        sized({**LLAMA, "checkpoint": files}).memory[0].likely
        for files in (FP8_FILES["checkpoint"], named)
    )
    assert other == pytest.approx(printed, rel=2e-3)
    assert found["available_kv_cache"] == Cause("follows_from_term", {"term": "weights"})


def test_a_split_that_the_log_does_not_state_counts_for_everything() -> None:
    """Half of the weights on a card: two cards, which explain NCCL, memory and tokens as well."""
    card, version, _, _, *rest = text_of(TWO).split("\n")
    found = causes("\n".join([card, version, *rest]), model="llama-3.1-8b")
    assert found == {"weights": Cause("split_not_stated", {"tensor_parallel_size": 2})}


def test_context_parallelism_is_found_where_the_log_hints_at_it() -> None:
    """The line of older releases names the factor; without arguments any may be tried."""
    wide = {**LLAMA, "gpu": "h100-80gb-hbm3", "vllm_version": "0.20.2"}
    wide |= {"tensor_parallel_size": "16", "kv_cache_dtype": "fp8"}
    text = text_of({**wide, "decode_context_parallel_size": "2"}, wide)
    cause = Cause("context_parallel", {"decode_context_parallel_size": 2})
    hint = "INFO 06-14 09:41:26 [kv_cache_utils.py:566] Multiplying the GPU KV cache size by the "
    found = causes(f"{text}\n{hint}cp_world_size 2.")
    assert found == dict.fromkeys(("kv_cache_size_tokens", "max_concurrency"), cause)
    silent = causes("\n".join(line for line in text.split("\n") if "non-default" not in line))
    assert silent == found
    unexplained = Cause("arithmetic_unexplained")
    assert causes(text) == dict.fromkeys(("kv_cache_size_tokens", "max_concurrency"), unexplained)


@pytest.mark.parametrize(
    ("server", "figures", "term", "cause"),
    [
        (LLAMA, {"weights": 11.1}, "weights", Cause("unexplained")),
        (GPT_OSS, {"weights": 20.0}, "weights", Cause("unexplained")),
        (GPT_OSS, {"weights": 11.0}, "weights", Cause("unexplained")),
        (
            {**LLAMA, "cpu_offload_gb": "4"},
            {"weights": 13.0},
            "weights",
            Cause("weights_offloaded", {"cpu_offload_gb": 4.0}),
        ),
        (LLAMA, {"peak_activation": 3.0}, "peak_activation", Cause("compile_cache_empty")),
        (EAGER, {"peak_activation": 3.0}, "peak_activation", Cause("unexplained")),
        (QWEN, {"peak_activation": 9.0}, "peak_activation", Cause("encoder_profiled")),
        (LLAMA, {"peak_activation": 0.1}, "peak_activation", Cause("compile_cache_filled")),
        (EAGER, {"peak_activation": 0.1}, "peak_activation", Cause("unexplained")),
        (V1, {"peak_activation": 0.2}, "peak_activation", Cause("flashinfer_sampler")),
        (TWO, {"non_torch": 3.0}, "non_torch", Cause("nccl_buffers")),
        (TWO, {"non_torch": 0.0}, "non_torch", Cause("unexplained")),
        (LLAMA, {"non_torch": 3.0}, "non_torch", Cause("unexplained")),
        (SHARED, {"non_torch": 40.0}, "non_torch", Cause("shared_memory")),
        (SHARED, {"available": 20.0}, "available_kv_cache", Cause("shared_memory")),
        (LLAMA, {"cudagraph_estimate": 3.0}, "cudagraph_estimate", Cause("graphs_vary")),
        (
            {**LLAMA, "max_cudagraph_capture_size": "64"},
            {"cudagraph_estimate": 3.0},
            "cudagraph_estimate",
            Cause("capture_sizes"),
        ),
        (LLAMA, {"available": 26.0}, "available_kv_cache", Cause("compile_cache_filled")),
        (EAGER, {"available": 40.0}, "available_kv_cache", Cause("unexplained")),
        (LLAMA, {"available": 20.0}, "available_kv_cache", Cause("unexplained")),
        (LLAMA, {"total": 44.0}, "total_memory", Cause("other_card_or_driver")),
    ],
)
def test_a_term_that_is_off_has_its_own_cause(
    server: dict[str, str], figures: dict[str, float], term: str, cause: Cause
) -> None:
    """One figure of a log is replaced, and no other term differs."""
    assert causes(text_of(server, **figures)) == {term: cause}


def test_a_kernel_that_pads_is_named_with_its_share() -> None:
    """MXFP4 experts a seventh larger than their files; half as large again is no padding."""
    found = causes(text_of(GPT_OSS, weights=15.0))["weights"]
    assert found.code == "kernel_padding"
    predicted = sized(GPT_OSS).memory[0].likely / 2**30
    assert float(found.numbers["percent"]) == pytest.approx(100 * (15 / predicted - 1), abs=0.1)


@pytest.mark.parametrize(
    ("figures", "term"),
    [({"non_torch": 3.0}, "non_torch"), ({"available": 20.0}, "available_kv_cache")],
)
def test_another_process_is_named_where_the_card_was_not_free(
    figures: dict[str, float], term: str
) -> None:
    """6.4 GiB were in use at start, and that much is told; two GiB could be the driver's own."""
    found = causes(text_of(LLAMA, free=37.99, **figures))[term]
    assert found.code == "other_process"
    assert found.numbers["used_gib"] == pytest.approx(6.4)
    assert causes(text_of(LLAMA, free=42.4, **figures))[term] == Cause("unexplained")


def test_without_a_word_about_free_memory_another_process_is_possible() -> None:
    """Nothing says how much of the card was free, so that is the first guess."""
    text = text_of(LLAMA, non_torch=3.0)
    before, _, after = text.partition("Free memory on device (43.89/44.39 GiB) on startup. ")
    assert causes(before + after)["non_torch"] == Cause("other_process")


def test_a_log_that_does_not_say_its_release_may_be_of_another() -> None:
    """What cannot be explained is then put down to that."""
    card, _, arguments, _, *rest = text_of(LLAMA, weights=11.1).split("\n")
    found = causes("\n".join([card, arguments, *rest]))
    assert {cause.code for cause in found.values()} == {"release_unknown"}


def test_tokens_that_no_setting_gives_are_not_explained() -> None:
    """A figure that no trial meets: patched code, or padding where the log tells of it."""
    text = text_of(LLAMA)
    wrong = text.replace("GPU KV cache size: 197,", "GPU KV cache size: 150,")
    assert wrong != text
    assert causes(wrong) == {"kv_cache_size_tokens": Cause("arithmetic_unexplained")}
    padded = (
        f"{wrong}\nWARNING 06-14 09:41:20 [kv_cache_utils.py:1000] Add 3 padding layers, "
        "may waste at most 12.50% KV cache memory"
    )
    assert causes(padded) == {
        "kv_cache_size_tokens": Cause("padding_layers", {"padding_layers": 3})
    }


def test_blocks_set_by_hand_are_predicted_as_they_are() -> None:
    """An override is read from the log, so it differs from nothing."""
    assert causes(text_of({**LLAMA, "num_gpu_blocks_override": "5000"}, LLAMA)) == {}
