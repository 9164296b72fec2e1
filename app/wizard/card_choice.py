"""Which card, server and layout the answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.catalog.catalogue import Catalogue
from app.catalog.gpus import CatalogueGpu
from app.catalog.model_search import nearest_names
from app.catalog.servers import Server
from app.core.gpu_spec import GpuSpec
from app.core.layout import Layout
from app.core.result import Assumption
from app.core.units import ceil_div
from app.wizard.answers import Answers, Problem, nearest_name
from app.wizard.model_choice import UnusableAnswerError


@dataclass(frozen=True, slots=True)
class CardChoice:
    """The card, and the server it was chosen with."""

    gpu: GpuSpec
    server: Server | None
    assumptions: tuple[Assumption, ...] = ()


def choose_card(answers: Answers, catalogue: Catalogue) -> CardChoice:
    """Find the card: named, of the named server, the vendor's first, or memory alone.

    Raises UnusableAnswerError.
    """
    server = _server(answers, catalogue)
    if "gpu" in answers.unsure:
        slug = server.gpu if server else catalogue.vendor.cards[0]
        assumption = Assumption("not_sure", (("field", "gpu"), ("value", slug)))
        return CardChoice(catalogue.gpus[slug].spec, server, (assumption,))
    if answers.gpu is None:
        if server is not None:
            return CardChoice(catalogue.gpus[server.gpu].spec, server)
        if answers.gpu_total_memory_bytes is None:
            raise UnusableAnswerError(Problem("missing", "gpu", ""))
        return CardChoice(_unnamed_card(answers.gpu_total_memory_bytes), None)
    gpu = _named(answers.gpu, catalogue)
    if server is not None and server.gpu != gpu.slug:
        numbers = (("server", server.slug), ("server_gpu", server.gpu))
        raise UnusableAnswerError(Problem("gpu_not_in_server", "gpu", answers.gpu, numbers))
    known = gpu.driver_memory_bytes or gpu.total_memory_bytes or answers.gpu_total_memory_bytes
    if known is None and answers.available_kv_cache_memory_bytes is None:
        raise UnusableAnswerError(
            Problem("gpu_memory_unknown", "gpu", answers.gpu, (("gpu", gpu.name),))
        )
    return CardChoice(gpu, server)


def layout_of(answers: Answers) -> Layout:
    """Return the layout as it was answered; what vLLM makes of it is the core's business."""
    return Layout(
        tensor_parallel_size=answers.tensor_parallel_size,
        pipeline_parallel_size=answers.pipeline_parallel_size,
        data_parallel_size=answers.data_parallel_size,
        decode_context_parallel_size=answers.decode_context_parallel_size,
        enable_expert_parallel=answers.enable_expert_parallel,
        replicas=answers.replicas,
    )


def server_assumptions(layout: Layout, server: Server | None) -> tuple[Assumption, ...]:
    """Say how many servers a layout takes where one is not enough."""
    if server is None or layout.cards <= server.cards:
        return ()
    servers = ceil_div(layout.cards, server.cards)
    return (Assumption("servers_needed", (("servers", servers), ("cards", layout.cards))),)


def _server(answers: Answers, catalogue: Catalogue) -> Server | None:
    if answers.server is None:
        return None
    found = catalogue.servers.get(answers.server.lower())
    if found is None:
        nearest = nearest_name(answers.server, list(catalogue.servers))
        raise UnusableAnswerError(
            Problem("unknown_server", "server", answers.server, (("nearest", nearest),))
        )
    return found


def _named(name: str, catalogue: Catalogue) -> GpuSpec:
    found = catalogue.card(name.strip().lower())
    if found is not None:
        return found.spec
    nearest = ", ".join(nearest_names(_names(name, catalogue), name))  # `h100` is short for several
    raise UnusableAnswerError(Problem("unknown_gpu", "gpu", name, (("nearest", nearest),)))


def _names(name: str, catalogue: Catalogue) -> Mapping[str, CatalogueGpu]:
    """Return the slugs to suggest from: slices only to those who wrote `mig`."""
    return catalogue.slices if "mig" in name.lower() else catalogue.gpus


def _unnamed_card(total_memory_bytes: int) -> GpuSpec:
    return GpuSpec(
        slug="",
        name="",
        architecture="",
        compute_capability=None,
        driver_memory_mib=None,
        total_memory_bytes=total_memory_bytes,
    )
