"""Looks a model up on the Hugging Face hub: config.json, quantisation file, size of the weights.

Off unless an operator names a hub. One host only: a redirect elsewhere is refused, ids and
revisions are checked before they become part of an address, every answer has a size and a time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from app.catalog.hub_cache import HubCache

HubCode = Literal[
    "hub_id_invalid",
    "hub_not_found",
    "hub_gated",
    "hub_too_large",
    "hub_too_slow",
    "hub_unreachable",
    "hub_unavailable",
    "hub_redirected",
    "hub_malformed",
]
SECONDS_PER_ANSWER = 5.0
SECONDS_IN_ALL = 12.0
LARGEST_FILE_BYTES = 1_000_000
LARGEST_LISTING_BYTES = 4_000_000
INDEX_HEAD_BYTES = 65_536
MOST_REDIRECTS = 2

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,95}"
_ID = re.compile(rf"{_PART}/{_PART}")
_REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,79}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TOTAL_SIZE = re.compile(rb'"total_size"\s*:\s*([0-9]{1,16})\b')
_CODES: dict[int, HubCode] = {401: "hub_gated", 403: "hub_gated", 404: "hub_not_found"}


class HubError(Exception):
    """Why a model could not be looked up; `facts` are what the message names."""

    def __init__(self, code: HubCode, **facts: str | int) -> None:
        """Keep code and facts for the message of the page."""
        super().__init__(code, facts)
        self.code = code
        self.facts = facts


@dataclass(frozen=True, slots=True)
class HubModel:
    """What the hub has of a model, at one commit.

    `revision` is that commit, so that a link to a sizing keeps its meaning. `weights_bytes` is
    the total its safetensors index gives, None where there is no index.
    """

    hf_id: str
    revision: str
    config: Mapping[str, Any]
    hf_quant_config: Mapping[str, Any] | None
    weights_bytes: int | None


async def look_up(base_url: str, folder: Path, hf_id: str, revision: str = "main") -> HubModel:
    """Ask a hub once, with a client of its own and answers kept in `folder`. Raises HubError."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return await Hub(base_url, client, HubCache(folder)).look_up(hf_id, revision)


class Hub:
    """One hub, over one client; answers are kept in a folder for a time."""

    def __init__(self, base_url: str, client: httpx.AsyncClient, cache: HubCache) -> None:
        """Use `client` (closed by whoever made it) for `base_url`, the only host ever asked."""
        self._base = httpx.URL(base_url.rstrip("/") + "/")
        self._client = client
        self._cache = cache

    async def look_up(self, hf_id: str, revision: str = "main") -> HubModel:
        """Find a model by its id, at a branch or at a commit. Raises HubError."""
        if not _ID.fullmatch(hf_id) or not _REVISION.fullmatch(revision):
            raise HubError("hub_id_invalid", hf_id=hf_id[:200])
        pinned = bool(_COMMIT.fullmatch(revision))
        kept = self._cache.read(hf_id, revision, pinned=pinned)
        if kept is not None:
            return HubModel(**kept)
        try:
            async with asyncio.timeout(SECONDS_IN_ALL):
                found = await self._fetch(hf_id, revision)
        except TimeoutError as error:
            raise HubError("hub_too_slow", hf_id=hf_id, seconds=int(SECONDS_IN_ALL)) from error
        for name in {revision, found.revision}:
            self._cache.write(hf_id, name, asdict(found))
        return found

    async def _fetch(self, hf_id: str, revision: str) -> HubModel:
        listing = await self._json(
            hf_id, f"api/models/{hf_id}/revision/{revision}", LARGEST_LISTING_BYTES
        )
        commit, files = listing.get("sha"), _file_names(listing.get("siblings"))
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise HubError("hub_malformed", hf_id=hf_id, file="api/models")
        resolve = f"{hf_id}/resolve/{commit}"
        config = await self._json(hf_id, f"{resolve}/config.json", LARGEST_FILE_BYTES)
        beside = None
        if "hf_quant_config.json" in files:
            beside = await self._json(hf_id, f"{resolve}/hf_quant_config.json", LARGEST_FILE_BYTES)
        total = None
        if "model.safetensors.index.json" in files:
            total = await self._total_size(hf_id, f"{resolve}/model.safetensors.index.json")
        return HubModel(hf_id, commit, config, beside, total)

    async def _total_size(self, hf_id: str, path: str) -> int | None:
        """Read the head of an index: its metadata comes before the list of tensors."""
        head = await self._read(hf_id, path, INDEX_HEAD_BYTES, whole=False)
        match = _TOTAL_SIZE.search(head)
        return int(match[1]) if match else None

    async def _json(self, hf_id: str, path: str, largest: int) -> dict[str, Any]:
        content = await self._read(hf_id, path, largest, whole=True)
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise HubError("hub_malformed", hf_id=hf_id, file=_name(path)) from error
        if not isinstance(value, dict):
            raise HubError("hub_malformed", hf_id=hf_id, file=_name(path))
        return value

    async def _read(self, hf_id: str, path: str, largest: int, *, whole: bool) -> bytes:
        url = self._base.join(path)
        for _ in range(MOST_REDIRECTS + 1):
            try:
                content, location = await self._get(hf_id, url, largest, whole=whole)
            except httpx.TimeoutException as error:
                seconds = int(SECONDS_PER_ANSWER)
                raise HubError("hub_too_slow", hf_id=hf_id, seconds=seconds) from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise HubError("hub_unreachable", hf_id=hf_id) from error
            if location is None:
                return content
            url = self._same_host(hf_id, url.join(location))
        raise HubError("hub_redirected", hf_id=hf_id)

    def _same_host(self, hf_id: str, url: httpx.URL) -> httpx.URL:
        if (url.scheme, url.host, url.port) != (
            self._base.scheme,
            self._base.host,
            self._base.port,
        ):
            raise HubError("hub_redirected", hf_id=hf_id, host=url.host)
        return url

    async def _get(
        self, hf_id: str, url: httpx.URL, largest: int, *, whole: bool
    ) -> tuple[bytes, str | None]:
        content = b""
        async with self._client.stream(
            "GET", url, timeout=SECONDS_PER_ANSWER, follow_redirects=False
        ) as answer:
            if answer.is_redirect:
                return b"", answer.headers["location"]
            if answer.status_code != httpx.codes.OK:
                code = _CODES.get(answer.status_code, "hub_unavailable")
                raise HubError(code, hf_id=hf_id, status=answer.status_code)
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > largest:
                    if whole:
                        raise HubError("hub_too_large", hf_id=hf_id, largest_bytes=largest)
                    return content[:largest], None
        return content, None


def _file_names(siblings: object) -> frozenset[str]:
    if not isinstance(siblings, list):
        return frozenset()
    names = (entry.get("rfilename") for entry in siblings if isinstance(entry, dict))
    return frozenset(name for name in names if isinstance(name, str))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
