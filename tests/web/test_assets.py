"""Static files: one address per content, so that a browser asks for each once."""

from pathlib import Path

import pytest

from app.web.assets import IMMUTABLE, AssetMissingError, Assets
from tests.strict_client import StrictClient


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one file."""
    (tmp_path / "a.css").write_text("p{}", encoding="utf-8")
    return tmp_path


def test_url_changes_with_the_content(folder: Path) -> None:
    """A changed file has another address, at once in development."""
    assets = Assets(folder, watch=True)
    before = assets.url("a.css")
    (folder / "a.css").write_text("p{margin:0}", encoding="utf-8")
    assert before != assets.url("a.css")
    assert before.startswith("/static/a.css?v=")


def test_a_missing_file_is_an_error(folder: Path) -> None:
    """A template that refers to a missing file fails with the file's name."""
    with pytest.raises(AssetMissingError, match=r"static/b\.css"):
        Assets(folder, watch=False).url("b.css")


def test_current_version_is_immutable(client: StrictClient) -> None:
    """With the current version a file is kept for a year, else it is asked for again."""
    assets: Assets = client.served.state.assets
    assert client.get(assets.url("favicon.svg")).headers["cache-control"] == IMMUTABLE
    for path in ("/static/favicon.svg", "/static/favicon.svg?v=000000000000"):
        assert client.get(path).headers["cache-control"] == "no-cache"


def test_nothing_outside_the_folder_is_served(client: StrictClient) -> None:
    """A path that climbs out of the folder finds nothing."""
    assert client.get("/static/%2e%2e/pyproject.toml").status_code == 404
