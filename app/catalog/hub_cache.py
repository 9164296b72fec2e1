"""Answers of the hub, kept in a folder for a time."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

BRANCH_SECONDS = 3600
COMMIT_SECONDS = 30 * 24 * 3600
MOST_FILES = 500
_KEYS = frozenset({"hf_id", "revision", "config", "hf_quant_config", "weights_bytes"})


class HubCache:
    """One JSON file for each id and revision; a commit never changes, a branch does."""

    def __init__(self, folder: Path) -> None:
        """Keep files in `folder`, which is made when the first is written."""
        self._folder = folder

    def read(self, hf_id: str, revision: str, *, pinned: bool) -> dict[str, Any] | None:
        """Return the fields of a HubModel; None where nothing fresh and whole is kept."""
        path = self._path(hf_id, revision)
        try:
            if time.time() - path.stat().st_mtime > (COMMIT_SECONDS if pinned else BRANCH_SECONDS):
                return None
            kept = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return kept if isinstance(kept, dict) and kept.keys() == _KEYS else None

    def write(self, hf_id: str, revision: str, found: Mapping[str, Any]) -> None:
        """Keep an answer; a disk that refuses only costs the next look-up its speed."""
        path = self._path(hf_id, revision)
        draft = path.with_suffix(f".{os.getpid()}.draft")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(found), encoding="utf-8")
            draft.replace(path)
            self._make_room()
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _make_room(self) -> None:
        files = sorted(self._folder.glob("*.json"), key=lambda each: each.stat().st_mtime)
        for path in files[: max(0, len(files) - MOST_FILES)]:
            path.unlink(missing_ok=True)

    def _path(self, hf_id: str, revision: str) -> Path:
        name = hashlib.sha256(f"{hf_id}@{revision}".encode()).hexdigest()
        return self._folder / f"{name}.json"
