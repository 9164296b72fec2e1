"""What every test may ask for: an application, a client that reads strictly, seeded properties."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from fastapi import FastAPI

from app.catalog.catalogue import Catalogue
from app.main import create_app
from app.settings import Settings
from app.tools.translations import compile_if_older
from tests import shipped
from tests.strict_client import StrictClient

BROWSER_TESTS = Path(__file__).parent / "browser"
DEEP_SECONDS = 1800

hypothesis.settings.register_profile("quick", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure(config: pytest.Config) -> None:
    """Compile the German catalogue once, before any worker needs it."""
    if not hasattr(config, "workerinput"):
        compile_if_older()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies below tests/browser, and give thousands of drawn cases the time they take."""
    deep = hypothesis.settings.get_current_profile_name() == "deep"
    for item in items:
        if item.path.is_relative_to(BROWSER_TESTS):
            item.add_marker(pytest.mark.browser)
        if deep and hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.timeout(DEEP_SECONDS))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the SIZING_ variables of the developer's shell out of the tests."""
    for name in list(os.environ):
        if name.startswith("SIZING_") and not name.startswith("SIZING_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """Return the shipped catalogue."""
    return shipped.catalogue()


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings most tests run with: defaults, one host that may embed, own folder.

    Nothing is delivered in the background; tests of delivery run it themselves.
    """
    return Settings(
        frame_ancestors=("https://www.example.com",),
        log_level="error",
        data_dir=tmp_path_factory.mktemp("var"),
        deliver=False,
        quote_rate="10000/hour",  # all tests come from one network
    )


@pytest.fixture(scope="session")
def app(settings: Settings, catalogue: Catalogue) -> FastAPI:
    """Return one application for all tests that do not need their own settings."""
    return create_app(settings, catalogue)


@pytest.fixture
def client(app: FastAPI) -> Iterator[StrictClient]:
    """Return a client that parses every HTML answer strictly and follows no redirect."""
    with StrictClient(app) as client:
        yield client


@pytest.fixture
def make_client(settings: Settings, catalogue: Catalogue) -> Iterator[Callable[..., StrictClient]]:
    """Return a function that makes a client for an application with other settings."""
    clients: list[StrictClient] = []

    def make(*, raise_server_exceptions: bool = True, **changes: object) -> StrictClient:
        changed = Settings.model_validate({**settings.model_dump(), **changes})
        app = create_app(changed, catalogue)
        made = StrictClient(app, raise_server_exceptions=raise_server_exceptions)
        clients.append(made)
        return made.__enter__()

    yield make
    for client in clients:
        client.__exit__()
