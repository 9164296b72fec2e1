"""What a config says without a card: kinds of layers, bytes of a token, weights by part."""

from __future__ import annotations

import pytest

from app.catalog.catalogue import Catalogue
from app.core.weights import checkpoint_bytes
from app.wizard.config_reading import read_parts

MODELS = (
    "gpt-oss-120b", "deepseek-v3.2", "qwen3-next-80b-a3b", "gemma-3-27b", "llama-3.3-70b",
    "nemotron-h-56b", "deepseek-v4-flash", "llama-4-scout",
)  # fmt: skip


def test_parts_add_up_to_the_checkpoint(catalogue: Catalogue) -> None:
    """The parts of every model and checkpoint are the bytes of its files, neither more nor less."""
    for slug in MODELS:
        model = catalogue.models[slug]
        for each in model.checkpoints:
            reading = read_parts(model.spec, each.checkpoint)
            assert reading.stored_bytes == checkpoint_bytes(model.spec, each.checkpoint), slug


@pytest.mark.parametrize(
    ("slug", "bytes_per_token"),
    [
        ("llama-3.3-70b", 320 * 1024),  # 2 x 80 layers x 8 heads x 128 x 2 bytes
        ("gpt-oss-120b", 36 * 1024),  # 18 of 36 layers: 2 x 8 heads x 64 x 2 bytes
        ("deepseek-v3", 61 * 1152),  # 576 values of 2 bytes
        ("deepseek-v3.2", 61 * (1152 + 132)),  # and 128 index values of a byte, with a scale
    ],
)
def test_bytes_of_a_token(catalogue: Catalogue, slug: str, bytes_per_token: int) -> None:
    """Bytes that every token adds in 16 bit are those worked out by hand."""
    model = catalogue.models[slug]
    assert read_parts(model.spec, model.select()[0].checkpoint).bytes_per_token == bytes_per_token


def test_every_layer_is_counted_once(catalogue: Catalogue) -> None:
    """Kinds count each layer, and one with two caches twice."""
    for model in (catalogue.models[slug] for slug in MODELS):
        reading = read_parts(model.spec, model.select()[0].checkpoint)
        beside = sum(layer.beside is not None for layer in model.spec.layers)
        assert sum(kind.layers for kind in reading.kinds) == len(model.spec.layers) + beside
