"""Check the catalogue, and show what it makes of a model or a card.

    python -m app.tools.catalogue_check [SLUG …] [--data data]

Without a slug: reads every file and says what is wrong, or how much there is. With the slug of a
model: its layers, and for each checkpoint the bytes computed from the shapes beside the published
ones. With the slug of a card: what the core takes from its file, and what is unknown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from app.catalog.catalogue import Catalogue, load_catalogue
from app.catalog.gpus import CatalogueGpu
from app.catalog.hf_config import ConfigError
from app.catalog.model_search import nearest_models, nearest_names
from app.catalog.models import CatalogueModel
from app.catalog.problems import CatalogueError
from app.core.units import GIB
from app.core.weights import checkpoint_bytes


def main(arguments: list[str] | None = None) -> int:
    """Run the check; returns 1 when something is wrong."""
    parser = argparse.ArgumentParser(description="Check the catalogue, show a model or a card.")
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="models or cards to show")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the catalogue's folder")
    options = parser.parse_args(arguments)
    try:
        catalogue = load_catalogue(options.data)
        lines = [line for slug in options.slugs for line in _described(catalogue, slug)]
    except (CatalogueError, LookupError) as error:
        print(error.args[0])
        return 1
    except ConfigError as error:
        facts = ", ".join(f"{name} {value}" for name, value in error.numbers)
        print(f"The config cannot be read: {error.code}, {facts}.")
        return 1
    print("\n".join(lines or [_totals(catalogue)]))
    return 0


def _totals(catalogue: Catalogue) -> str:
    checkpoints = sum(len(model.checkpoints) for model in catalogue.models.values())
    return (
        f"{len(catalogue.models)} models with {checkpoints} checkpoints, {len(catalogue.gpus)} "
        f"cards with {len(catalogue.slices)} MIG slices, {len(catalogue.servers)} servers, "
        f"vendor {catalogue.vendor.name!r}, data of {catalogue.data_version}: no problem."
    )


def _described(catalogue: Catalogue, slug: str) -> Iterator[str]:
    if slug in catalogue.models:
        return _model(catalogue.models[slug])
    card = catalogue.card(slug)
    if card is not None:
        return _gpu(card)
    near = [model.slug for model in nearest_models(catalogue.models, slug, 1)]
    near += nearest_names(catalogue.gpus, slug, 1)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise LookupError(f"No model and no card is called {slug!r}.{hint}")


def _model(model: CatalogueModel) -> Iterator[str]:
    spec = model.spec
    kinds = Counter(
        getattr(layer.cache, "kind", type(layer.cache).__name__) for layer in spec.layers
    )
    layers = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    yield f"{model.name} ({model.slug}): {spec.architecture}, layers: {layers}"
    yield f"  not known: {', '.join(unknown.code for unknown in model.unknowns) or 'nothing'}"
    for each in model.checkpoints:
        computed = checkpoint_bytes(model.spec_of(each.hf_id), each.checkpoint)
        published = each.checkpoint.weights_bytes
        beside = "no published size"
        if published:
            beside = f"published {published / GIB:.2f} GiB, {computed / published - 1:+.3%}"
        yield f"  {each.hf_id} [{each.precision}]: {computed / GIB:.2f} GiB computed, {beside}"


def _gpu(gpu: CatalogueGpu) -> Iterator[str]:
    spec = gpu.spec
    total = spec.total_memory_bytes
    yield f"{gpu.name} ({gpu.slug}): {spec.architecture}, compute capability " + (
        ".".join(map(str, spec.compute_capability)) if spec.compute_capability else "unknown"
    )
    yield f"  the driver reports {spec.driver_memory_mib or '?'} MiB, vLLM sees " + (
        f"{total / GIB:.2f} GiB" if total else "an unknown total"
    )
    yield f"  not known: {', '.join(gpu.unknown) or 'nothing'}"


if __name__ == "__main__":
    raise SystemExit(main())
