"""Several models on one server: which server is meant, and what to change where they do not fit."""

from typing import Any

from app.catalog.catalogue import Catalogue
from app.core.one_server import place
from app.core.result import SizingResult
from app.core.sizing import size
from app.core.units import GIB
from app.wizard.answers import Answers
from app.wizard.one_server import (
    larger_server,
    named_server,
    server_for,
    servers_with,
    smaller_shares,
)
from app.wizard.sizing_request import Prepared, to_request

SMALL: dict[str, Any] = {"model": "llama-3.1-8b"}
MIDDLE: dict[str, Any] = {"model": "qwen3-32b"}
PAIR: dict[str, Any] = {
    "model": "llama-3.3-70b", "checkpoint": "fp8", "tensor_parallel_size": 2,
}  # fmt: skip


def sized(
    catalogue: Catalogue, *cases: dict[str, Any]
) -> tuple[list[Prepared], list[SizingResult]]:
    """Return what the cases mean on the vendor's first card, and their results."""
    common: dict[str, Any] = {"gpu": "rtx-pro-6000-server", "max_model_len": 8192}
    prepared = [to_request(Answers(**{**common, **case}), catalogue) for case in cases]
    requests = [each.request for each in prepared if each.request is not None]
    assert len(requests) == len(cases)
    return prepared, [size(each) for each in requests]


def test_shares_are_found_that_start_beside_each_other(catalogue: Catalogue) -> None:
    """An 8B and a 32B model fit on one card, each with a share that leaves it requests."""
    prepared, results = sized(catalogue, SMALL, MIDDLE)
    assert len(place(results, 1).cards) == 2
    found = smaller_shares(prepared, results, 1)
    assert found is not None
    assert found.placement.cards == ((1, 0),)
    assert all(each.ok and each.verdict_requests for each in found.results)
    shares = [each.gpu_memory_utilization or 0 for each in found.answers]
    assert sum(shares) <= 1
    again = [to_request(each, catalogue).request for each in found.answers]
    assert [each and size(each) for each in again] == list(found.results)


def test_a_group_keeps_its_cards_and_its_share(catalogue: Catalogue) -> None:
    """Beside a pair on three cards, the two small ones share the third."""
    prepared, results = sized(catalogue, SMALL, PAIR, MIDDLE)
    found = smaller_shares(prepared, results, 3)
    assert found is not None
    assert found.answers[1] == prepared[1].answers
    assert found.placement.cards == ((1,), (1,), (2, 0))


def test_a_fixed_cache_keeps_its_size(catalogue: Catalogue) -> None:
    """Its share only falls to what it needs, so that the check at start passes."""
    fixed = {**SMALL, "kv_cache_memory_bytes": 8 * GIB}
    prepared, results = sized(catalogue, fixed, MIDDLE)
    found = smaller_shares(prepared, results, 1)
    assert found is not None
    assert found.answers[0].kv_cache_memory_bytes == 8 * GIB
    assert found.results[0].cache == results[0].cache


def test_nothing_is_promised_that_does_not_start(catalogue: Catalogue) -> None:
    """Two 32B models in 16 bit on one card, more copies than cards, two pairs: no shares help."""
    for cases, most in (
        ((MIDDLE, MIDDLE), 1),
        (({**SMALL, "replicas": 3}, SMALL), 2),
        ((PAIR, PAIR), 3),
        ((PAIR, SMALL), 2),
    ):
        prepared, results = sized(catalogue, *cases)
        assert smaller_shares(prepared, results, most) is None


def test_the_server_that_is_meant(catalogue: Catalogue) -> None:
    """A named one, else the smallest with room, else the largest there is."""
    prepared, results = sized(catalogue, SMALL, PAIR)
    named = [each.server for each in prepared]
    chosen = server_for(results, named, catalogue)
    assert chosen is not None
    assert chosen.slug == "4x-rtx-pro-6000-server"
    one = catalogue.servers["1x-rtx-pro-6000-server"]
    assert server_for(results, [None, one], catalogue) is one
    _, many = sized(catalogue, {**SMALL, "replicas": 20}, SMALL)
    largest = server_for(many, [None, None], catalogue)
    assert largest is not None
    assert largest.cards == 8


def test_a_card_without_listed_servers_has_the_usual_sizes(catalogue: Catalogue) -> None:
    """One, two, four or eight L40S; their slugs are read back, other texts are no server."""
    assert [each.cards for each in servers_with("l40s", catalogue)] == [1, 2, 4, 8]
    two = named_server("2x-l40s", catalogue)
    assert two is not None
    assert (two.gpu, two.cards) == ("l40s", 2)
    assert larger_server(two, 3, catalogue) == named_server("4x-l40s", catalogue)
    assert larger_server(two, 9, catalogue) is None
    for text in ("", "x-", "3x-l40s", "2x-nothing", "l40s", "2x-"):
        assert named_server(text, catalogue) is None
