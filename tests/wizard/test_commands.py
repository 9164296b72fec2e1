"""Commands, read back by the reader of pasted commands."""

import json
from collections.abc import Callable, Mapping

import pytest

from app.catalog.catalogue import Catalogue
from app.core.sizing import size
from app.readings.start_log import read_start_log
from app.wizard.answers import Answers, parse_answers
from app.wizard.commands import (
    FLAGS,
    compose_file,
    container_commands,
    docker_command,
    image_of,
    kubernetes_deployment,
    serve_command,
)
from app.wizard.permalink import text_of
from app.wizard.sizing_request import to_request

HF_ID = "nvidia/Llama-3.3-70B-Instruct-FP8"
IMAGE = image_of("0.32.0")
LLAMA = Answers(model="llama-3.3-70b", checkpoint=HF_ID, gpu="rtx-pro-6000-server")
FORMS: Mapping[str, Callable[[Answers], str]] = {
    "serve": lambda answers: serve_command(HF_ID, answers),
    "docker": lambda answers: docker_command(HF_ID, answers, IMAGE),
    "compose": lambda answers: compose_file(HF_ID, answers, IMAGE),
    "kubernetes": lambda answers: kubernetes_deployment(HF_ID, answers, IMAGE),
}
CASES = (
    LLAMA.with_changes(tensor_parallel_size=2, max_model_len=8192),
    LLAMA.with_changes(max_model_len=-1, gpu_memory_utilization=0.95, enforce_eager=True),
    LLAMA.with_changes(
        tensor_parallel_size=4, pipeline_parallel_size=2, kv_cache_dtype="fp8", max_num_seqs=64
    ),
    LLAMA.with_changes(
        max_model_len=4096, enable_prefix_caching=False, kv_cache_memory_bytes=10 * 2**30
    ),
    LLAMA.with_changes(
        tensor_parallel_size=2,
        max_model_len=8192,
        limit_mm_per_prompt='{"image":2}',
        async_scheduling=False,
    ),
)


def read_back(text: str) -> Answers:
    """Return the answers that a pasted command states."""
    (start,) = read_start_log(text).starts
    stated = {
        name: json.dumps(value) if isinstance(value, Mapping) else text_of(value)
        for name, value in start.engine_args.items()
    }
    assert stated.pop("model") == HF_ID
    parsed = parse_answers(stated.items())
    assert not parsed.problems
    return parsed.answers


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("answers", CASES, ids=range(len(CASES)))
def test_a_command_says_exactly_what_was_chosen(form: str, answers: Answers) -> None:
    """Every flag comes back from every form with its value, and no other."""
    found = read_back(FORMS[form](answers))
    assert {name: getattr(found, name) for name in FLAGS} == {
        name: getattr(answers, name) for name in FLAGS
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_command_is_accepted_by_the_start_check(form: str, catalogue: Catalogue) -> None:
    """What is read back starts, and prints what the sizing printed."""
    answers = CASES[0]
    again = read_back(FORMS[form](answers)).with_changes(
        model=answers.model, checkpoint=answers.checkpoint, gpu=answers.gpu
    )
    asked, found = to_request(answers, catalogue).request, to_request(again, catalogue).request
    assert asked is not None
    assert found is not None
    assert size(found).ok
    assert size(found).log_lines == size(asked).log_lines


def test_copies_get_cards_and_ports_of_their_own() -> None:
    """Two copies of two cards are two services on cards 0, 1 and 2, 3."""
    text = compose_file(HF_ID, CASES[0].with_changes(replicas=2), IMAGE)
    assert 'device_ids: ["0", "1"]' in text
    assert 'device_ids: ["2", "3"]' in text
    assert text.count("image: vllm/vllm-openai:v0.32.0") == 2
    assert "8001:8000" in text


def test_words_of_a_shell_stay_whole() -> None:
    """A name with a blank and JSON with quotes come back as one word each."""
    text = serve_command("a b", LLAMA.with_changes(limit_mm_per_prompt='{"image":2}'))
    assert "'a b'" in text
    assert """'{"image":2}'""" in text


def test_a_slice_is_named_as_the_toolkit_does(catalogue: Catalogue) -> None:
    """Slice 0 of card 0 for docker; the fifth of four is on the next card; a resource of its own.

    A whole card keeps its plain number.
    """
    gpu = catalogue.slices["rtx-pro-6000-server-mig-1g.24gb"].spec
    answers = Answers(model="llama-3.1-8b", replicas=5)
    written = container_commands(HF_ID, answers, "0.32.0", gpu)
    assert """--gpus '"device=0:0"'""" in written["docker"]
    assert 'device_ids: ["0:3"]' in written["compose"]
    assert 'device_ids: ["1:0"]' in written["compose"]
    assert "limits: {nvidia.com/mig-1g.24gb: 1}" in written["kubernetes"]
    assert 'device_ids: ["4"]' in container_commands(HF_ID, answers, "0.32.0")["compose"]
