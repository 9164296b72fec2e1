"""Static files with a version in their address, so that a browser asks for each once."""

import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

MOUNT: Final = "/static"
IMMUTABLE: Final = "public, max-age=31536000, immutable"
REVALIDATE: Final = "no-cache"


class AssetMissingError(LookupError):
    """A template names a static file that does not exist."""


class Assets(StaticFiles):
    """Serve one folder; `?v=` with the current content hash makes an answer immutable."""

    def __init__(self, folder: Path, *, watch: bool) -> None:
        """Hash every file once.

        Args:
            folder: the folder of static files.
            watch: hash again when a file has changed, for development.
        """
        super().__init__(directory=folder)
        self._folder = folder
        self._watch = watch
        self._versions: dict[str, tuple[int, str]] = {}
        for file in folder.rglob("*"):
            if file.is_file():
                self._remember(file.relative_to(folder).as_posix())

    def _remember(self, name: str) -> str:
        file = self._folder / name
        version = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        self._versions[name] = (file.stat().st_mtime_ns, version)
        return version

    def version(self, name: str) -> str:
        """Return the first 12 hex digits of a file's sha256.

        Raises:
            AssetMissingError: there is no such file.
        """
        known = self._versions.get(name)
        file = self._folder / name
        if (
            self._watch
            and file.is_file()
            and (known is None or known[0] != file.stat().st_mtime_ns)
        ):
            return self._remember(name)
        if known is None:
            raise AssetMissingError(f"static/{name} does not exist; a template refers to it")
        return known[1]

    def url(self, name: str) -> str:
        """Return the versioned address of a file, such as /static/css/app.css?v=0123456789ab."""
        return f"{MOUNT}/{name}?v={self.version(name)}"

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Answer with a file and say how long it may be kept."""
        response = await super().get_response(path, scope)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        current = path in self._versions and asked == self.version(path)
        response.headers["Cache-Control"] = IMMUTABLE if current else REVALIDATE
        return response
