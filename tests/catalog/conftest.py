"""A small catalogue to break."""

import shutil
from pathlib import Path

import pytest

from tests.shipped import DATA


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder the application reads its facts from."""
    return DATA


@pytest.fixture
def small(tmp_path: Path, data_folder: Path) -> Path:
    """Return a small catalogue without a fault, to lay other files into."""
    for kept in (
        "VERSION",
        "gpus/h200-nvl.toml",
        "gpus/rtx-pro-6000-server.toml",
        "models/llama-3.3-70b.json",
        "vendors/default.toml",
    ):
        (tmp_path / kept).parent.mkdir(exist_ok=True)
        shutil.copy(data_folder / kept, tmp_path / kept)
    for folder in ("servers", "vllm", "measurements"):
        shutil.copytree(data_folder / folder, tmp_path / folder)
    return tmp_path
