"""Choices of the guided flow that stand for two answers: a card with its server, a way to split.

One list is one question. What was chosen travels under a name of the page and is written out here
into the answers it means, before they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.wizard.inputs import UNSURE

CARD: Final = "card"
SPLIT: Final = "split"
KEPT: Final = "kept"
LAYOUT_FIELDS: Final = frozenset(
    {
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "decode_context_parallel_size",
        "enable_expert_parallel",
        "replicas",
    }
)
_SPLIT: Final = re.compile(r"([0-9]{1,4})x([0-9]{1,4})")

Pairs = list[tuple[str, str]]


def write_out(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """Replace `card` and `split` by the answers they stand for; everything else stays.

    `card` is `server:SLUG`, `gpu:SLUG` or `unsure`; `split` is `TENSOR_PARALLELxREPLICAS`,
    `unsure`, or `kept` for a layout that the list does not offer.
    """
    rest: Pairs = []
    card = split = None
    for name, text in pairs:
        if name == CARD:
            card = text
        elif name == SPLIT:
            split = text
        else:
            rest.append((name, text))
    if card is not None:
        rest = [pair for pair in rest if pair[0] not in {"gpu", "server"}] + _card(card)
    if split is not None and split != KEPT:
        rest = [pair for pair in rest if pair[0] not in LAYOUT_FIELDS] + _split(split)
    return rest


def _card(text: str) -> Pairs:
    kind, _, slug = text.partition(":")
    if kind in {"server", "gpu"} and slug:
        return [(kind, slug)]
    return [("gpu", UNSURE if text == UNSURE else text)]


def _split(text: str) -> Pairs:
    if text == UNSURE:
        return [("tensor_parallel_size", UNSURE)]
    found = _SPLIT.fullmatch(text)
    if found is None:
        return [("tensor_parallel_size", text)]
    return [("tensor_parallel_size", found[1]), ("replicas", found[2])]
