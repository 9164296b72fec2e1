"""The catalogue as it is shipped, read once for all tests."""

from pathlib import Path

import pytest

from app.catalog.catalogue import Catalogue, load_catalogue
from app.main import ROOT


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder the application reads its facts from."""
    return ROOT / "data"


@pytest.fixture(scope="session")
def catalogue(data_folder: Path) -> Catalogue:
    """Return the shipped catalogue."""
    return load_catalogue(data_folder)
