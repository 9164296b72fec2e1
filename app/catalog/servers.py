"""Servers that can be sized and sold: `data/servers/*.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from app.catalog.facts import Fact, Slug, StrictModel, Text
from app.catalog.gpus import CatalogueGpu
from app.catalog.problems import Problem, file_label, misnamed, read_file

InterconnectKind = Literal["none", "pcie", "nvlink_bridge", "nvlink_switch"]


class InterconnectFile(StrictModel):
    """How the cards reach each other; `cards_per_group` are joined, groups meet over PCIe."""

    kind: Fact[InterconnectKind]
    cards_per_group: Annotated[int, Field(ge=1, le=72)]


class ServerFile(StrictModel):
    """One server, one file."""

    slug: Slug
    name: Text
    gpu: Slug
    cards: Annotated[int, Field(ge=1, le=72)]
    interconnect: InterconnectFile


@dataclass(frozen=True, slots=True)
class Server:
    """A server: `cards` times the card `gpu`.

    `interconnect` joins `cards_per_group` cards at a time; between groups data goes over PCIe.
    """

    slug: str
    name: str
    gpu: str
    cards: int
    interconnect: InterconnectKind
    cards_per_group: int
    source: str


def load_servers(
    folder: Path, gpus: Mapping[str, CatalogueGpu], problems: list[Problem]
) -> dict[str, Server]:
    """Read every server; what is wrong is added to `problems` and the server left out."""
    servers: list[Server] = []
    for path in sorted(folder.glob("*.toml")):
        row = read_file(path, ServerFile, problems)
        if row is None:
            continue
        before = len(problems)
        problems.extend(_contradictions(path, row, gpus))
        if len(problems) == before:
            servers.append(_server(row))
    servers.sort(key=lambda server: (server.gpu, server.cards))
    return {server.slug: server for server in servers}


def _server(row: ServerFile) -> Server:
    return Server(
        slug=row.slug,
        name=row.name,
        gpu=row.gpu,
        cards=row.cards,
        interconnect=row.interconnect.kind.value,
        cards_per_group=row.interconnect.cards_per_group,
        source=row.interconnect.kind.source,
    )


def _contradictions(path: Path, row: ServerFile, gpus: Mapping[str, CatalogueGpu]) -> list[Problem]:
    def problem(field: str, message: str) -> Problem:
        return Problem(file_label(path), row.slug, field, message)

    found = misnamed(path, row.slug)
    if row.gpu not in gpus:
        found.append(problem("gpu", f"is {row.gpu!r}, and there is no gpus/{row.gpu}.toml."))
    if row.interconnect.cards_per_group > row.cards:
        found.append(
            problem(
                "interconnect.cards_per_group",
                f"is {row.interconnect.cards_per_group}, more than the server's {row.cards} cards.",
            )
        )
    return found
