"""A link that was made from a start log: what was measured holds for the server it came from."""

import json

import pytest

from app.catalog.catalogue import Catalogue
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.wizard.answers import Answers, parse_answers
from app.wizard.permalink import query_pairs
from app.wizard.sizing_request import to_request

SERVER = {"model": "llama-3.1-8b", "gpu": "l40s", "vllm_version": "0.25.1", "max_model_len": 8192}
MEASURED = {
    "measured_weights_gib": "15.5",
    "measured_peak_activation_gib": "1.1",
    "measured_non_torch_gib": "0.2",
    "measured_cudagraph_gib": "0.5",
}


def answers(**changes: str) -> Answers:
    """Answers of the measured server, with changes."""
    named = {name: str(value) for name, value in SERVER.items()}
    pairs = {**named, **MEASURED, "measured_on": json.dumps(SERVER), **changes}
    parsed = parse_answers(pairs.items())
    assert not parsed.problems
    return parsed.answers


def sized(catalogue: Catalogue, **changes: str) -> SizingResult:
    """The sizing of the measured server, with changes."""
    request = to_request(answers(**changes), catalogue).request
    assert request is not None
    return size(request)


def weights_gib(result: SizingResult) -> float:
    """Weights of the binding card."""
    return next(term.likely for term in result.memory if term.code == "weights") / GIB


def test_the_measured_server_has_no_range(catalogue: Catalogue) -> None:
    """On the server itself, and on copies of it, the measured terms count as they are."""
    for changes in ({}, {"replicas": "2"}):
        result = sized(catalogue, **changes)
        assert weights_gib(result) == pytest.approx(15.5)
        assert result.tokens_range is not None
        assert result.tokens_range.low == result.tokens_range.high


def test_a_split_divides_what_was_measured(catalogue: Catalogue) -> None:
    """Over two cards the measured weights are divided, and the answer has a range again."""
    result = sized(catalogue, tensor_parallel_size="2")
    assert 15.5 / 2 <= weights_gib(result) < 15.5 * 0.52
    assert result.tokens_range is not None
    assert result.tokens_range.low < result.tokens_range.high


def test_the_memory_of_the_logged_card_stays_with_that_card(catalogue: Catalogue) -> None:
    """What vLLM saw of the logged card is forgotten with another card, and kept with the same."""
    seen = str(round(44.42 * GIB))
    server = json.dumps({**SERVER, "gpu_total_memory_bytes": int(seen)})
    same = {"gpu_total_memory_bytes": seen, "measured_on": server}
    assert sized(catalogue, **same).total_memory_bytes == int(seen)
    plain = sized(catalogue, gpu="h200").total_memory_bytes
    assert sized(catalogue, **same, gpu="h200").total_memory_bytes == plain
    prepared = to_request(answers(**same, gpu="h200"), catalogue)
    assert prepared.answers.gpu_total_memory_bytes is None


def test_the_memory_said_of_another_card_counts(catalogue: Catalogue) -> None:
    """A figure of one's own, unlike the log's, counts on every card: the control."""
    seen = round(140 * GIB)
    server = json.dumps({**SERVER, "gpu_total_memory_bytes": round(44.42 * GIB)})
    result = sized(catalogue, gpu="h200", gpu_total_memory_bytes=str(seen), measured_on=server)
    assert result.total_memory_bytes == seen


def test_without_its_server_a_term_counts_as_it_is(catalogue: Catalogue) -> None:
    """Terms that name no server replace the estimates, whatever else is asked: the control."""
    result = sized(catalogue, tensor_parallel_size="2", measured_on="")
    assert weights_gib(result) == pytest.approx(15.5)


def test_the_server_travels_in_the_link() -> None:
    """The permalink holds the server, and is read back to the same answers."""
    pairs = query_pairs(answers())
    assert pairs is not None
    assert parse_answers(pairs).answers == answers()


@pytest.mark.parametrize(
    ("server", "key"),
    [({"gpu": "l40s"}, "model"), ({**SERVER, "gpu": "no-such"}, "gpu"),
     ({**SERVER, "max_model_len": "x"}, "max_model_len")],
)  # fmt: skip
def test_a_server_that_cannot_be_sized_is_a_problem(
    catalogue: Catalogue, server: dict[str, object], key: str
) -> None:
    """A server that is incomplete or unknown is named as the problem, with its part."""
    problems = to_request(answers(measured_on=json.dumps(server)), catalogue).problems
    assert [(each.field, dict(each.numbers)["key"]) for each in problems] == [("measured_on", key)]
