"""The vendor behind the wizard: `data/vendors/*.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from app.catalog.facts import Slug, StrictModel, Text
from app.catalog.gpus import CatalogueGpu
from app.catalog.problems import Problem, file_label, read_file
from app.catalog.servers import Server

Link = Annotated[str, Field(pattern=r"^https://[^\s]+$", max_length=400)]
Mail = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=200)]


class LinksFile(StrictModel):
    """The same page in each language of the wizard."""

    de: Link
    en: Link


class PricesFile(StrictModel):
    """Net prices by slug of a server, for the sales desk; none are shown where none are given."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    as_of: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    net: dict[Slug, Annotated[int, Field(gt=0)]]


class VendorFile(StrictModel):
    """One vendor, one file."""

    slug: Slug
    name: Text
    email: Mail
    phone: str = ""
    website: Link | None = None
    privacy: LinksFile
    cards: Annotated[list[Slug], Field(min_length=1)]
    servers: Annotated[list[Slug], Field(min_length=1)]
    prices: PricesFile | None = None


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who sells the servers.

    `privacy_links` by language; `cards` and `servers` are slugs in the order they are offered;
    `net_prices` by slug of a server, empty where the vendor names none.
    """

    slug: str
    name: str
    email: str
    phone: str
    website: str | None
    privacy_links: tuple[tuple[str, str], ...]
    cards: tuple[str, ...]
    servers: tuple[str, ...]
    currency: str | None = None
    net_prices: tuple[tuple[str, int], ...] = ()

    def privacy_link(self, language: str) -> str:
        """Link to the privacy notice in `language`, else in the first language there is."""
        links = dict(self.privacy_links)
        return links.get(language, self.privacy_links[0][1])


def load_vendor(
    path: Path,
    gpus: Mapping[str, CatalogueGpu],
    servers: Mapping[str, Server],
    problems: list[Problem],
) -> Vendor | None:
    """Read the vendor's file; None when something is wrong, which is then in `problems`."""
    if not path.is_file():
        problems.append(
            Problem(file_label(path), path.stem, "(the whole file)", "is missing. Add the file.")
        )
        return None
    row = read_file(path, VendorFile, problems)
    if row is None:
        return None
    problems.extend(
        Problem(file_label(path), row.slug, field, f"lists {slug!r}, which the catalogue lacks.")
        for field, slugs, known in (
            ("cards", row.cards, gpus),
            ("servers", row.servers, servers),
            ("prices.net", list(row.prices.net) if row.prices else [], servers),
        )
        for slug in slugs
        if slug not in known
    )
    prices = row.prices
    return Vendor(
        slug=row.slug,
        name=row.name,
        email=row.email,
        phone=row.phone,
        website=row.website,
        privacy_links=(("de", row.privacy.de), ("en", row.privacy.en)),
        cards=tuple(row.cards),
        servers=tuple(row.servers),
        currency=prices.currency if prices else None,
        net_prices=tuple(prices.net.items()) if prices else (),
    )
