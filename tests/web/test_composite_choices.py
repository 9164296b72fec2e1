"""Choices that stand for two answers are written out before anything else reads them."""

from __future__ import annotations

import pytest

from app.web.composite_choices import write_out


@pytest.mark.parametrize(
    ("chosen", "meant"),
    [
        ("server:2x-h200-nvl", [("server", "2x-h200-nvl")]),
        ("gpu:h100-80gb-hbm3", [("gpu", "h100-80gb-hbm3")]),
        ("unsure", [("gpu", "unsure")]),
        ("nonsense", [("gpu", "nonsense")]),
        ("server:", [("gpu", "server:")]),
    ],
)
def test_card_takes_the_place_of_card_and_server(chosen: str, meant: list[tuple[str, str]]) -> None:
    """What was chosen before, card or server, gives way; nonsense stays visible as a card."""
    before = [("gpu", "old"), ("server", "old"), ("model", "m")]
    assert write_out([*before, ("card", chosen)]) == [("model", "m"), *meant]


@pytest.mark.parametrize(
    ("chosen", "meant"),
    [
        ("4x2", [("tensor_parallel_size", "4"), ("replicas", "2")]),
        ("unsure", [("tensor_parallel_size", "unsure")]),
        ("x", [("tensor_parallel_size", "x")]),
    ],
)
def test_split_takes_the_place_of_the_whole_layout(
    chosen: str, meant: list[tuple[str, str]]
) -> None:
    """A new way to split leaves nothing of the layout before."""
    before = [("pipeline_parallel_size", "2"), ("replicas", "3"), ("model", "m")]
    assert write_out([*before, ("split", chosen)]) == [("model", "m"), *meant]


def test_kept_layout_stays() -> None:
    """A layout that the list has no name for stays as it was when it is chosen again."""
    before = [("pipeline_parallel_size", "2"), ("model", "m")]
    assert write_out([*before, ("split", "kept")]) == before
