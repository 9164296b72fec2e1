"""Looking a model up on the hub: what comes back, what is kept, and every way it can fail."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.catalog import hub
from app.catalog.config_model import model_from_config
from app.catalog.hub import Hub, HubError, HubModel
from app.catalog.hub_cache import BRANCH_SECONDS, COMMIT_SECONDS, HubCache
from tests.catalog.hub_server import COMMIT, CONFIG, QUANTIZATION, HubHandler, running_hub


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run one hub for all tests of this module."""
    with running_hub() as url:
        yield url


@pytest.fixture(autouse=True)
def _forget_what_was_asked() -> None:
    HubHandler.asked.clear()


def look_up(address: str, folder: Path, hf_id: str, revision: str = "main") -> HubModel:
    """Ask as the application does, with a client of its own."""

    async def ask() -> HubModel:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await Hub(address, client, HubCache(folder)).look_up(hf_id, revision)

    return asyncio.run(ask())


def failure(address: str, folder: Path, hf_id: str, revision: str = "main") -> HubError:
    """Return the error of a look-up that must fail."""
    with pytest.raises(HubError) as caught:
        look_up(address, folder, hf_id, revision)
    return caught.value


def test_config_quantisation_and_size_come_with_the_commit(address: str, tmp_path: Path) -> None:
    """A branch is resolved to its commit; files are read at that commit."""
    found = look_up(address, tmp_path, "acme/good")
    assert found == HubModel("acme/good", COMMIT, CONFIG, QUANTIZATION, 123_456_789)
    assert all(COMMIT in path for path in HubHandler.asked if "resolve" in path)


def test_what_was_found_becomes_a_model(address: str, tmp_path: Path) -> None:
    """Config and quantisation file together give shapes, storage and KV scheme."""
    found = look_up(address, tmp_path, "acme/good")
    made = model_from_config(found.config, found.hf_quant_config, hf_id=found.hf_id)
    assert made.spec.num_hidden_layers == 4
    assert (made.checkpoint.precision, made.checkpoint.kv_cache_scheme) == ("fp8", "fp8_e4m3")


def test_files_that_are_not_listed_are_not_asked_for(address: str, tmp_path: Path) -> None:
    """Two requests are enough for a plain model."""
    found = look_up(address, tmp_path, "acme/plain")
    assert (found.hf_quant_config, found.weights_bytes) == (None, None)
    assert len(HubHandler.asked) == 2


def test_a_second_look_up_asks_nobody(address: str, tmp_path: Path) -> None:
    """Branch and commit are both answered from the folder."""
    first = look_up(address, tmp_path, "acme/good")
    asked = len(HubHandler.asked)
    assert look_up(address, tmp_path, "acme/good") == first
    assert look_up(address, tmp_path, "acme/good", COMMIT) == first
    assert len(HubHandler.asked) == asked


def test_a_branch_is_asked_again_after_an_hour_a_commit_is_not(
    address: str, tmp_path: Path
) -> None:
    """A commit never changes; a branch may."""
    look_up(address, tmp_path, "acme/plain")
    past = time.time() - BRANCH_SECONDS - 60
    for path in tmp_path.iterdir():
        os.utime(path, (past, past))
    HubHandler.asked.clear()
    look_up(address, tmp_path, "acme/plain", COMMIT)
    assert not HubHandler.asked
    look_up(address, tmp_path, "acme/plain")
    assert HubHandler.asked


@pytest.mark.parametrize("content", ["", "[]", '{"hf_id": "acme/plain"}', "[" * 100_000])
def test_a_damaged_answer_in_the_folder_is_asked_for_again(
    address: str, tmp_path: Path, content: str
) -> None:
    """Whatever stands in the file, the look-up works."""
    look_up(address, tmp_path, "acme/plain")
    for path in tmp_path.iterdir():
        path.write_text(content, encoding="utf-8")
    assert look_up(address, tmp_path, "acme/plain").config == CONFIG


def test_a_folder_that_cannot_be_written_costs_only_the_cache(address: str, tmp_path: Path) -> None:
    """The answer comes all the same."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    assert look_up(address, blocked / "hub", "acme/plain").revision == COMMIT


def test_the_folder_does_not_grow_without_end(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the oldest answers go."""
    monkeypatch.setattr("app.catalog.hub_cache.MOST_FILES", 2)
    for name in ("good", "plain", "moved"):
        look_up(address, tmp_path, f"acme/{name}")
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert COMMIT_SECONDS > BRANCH_SECONDS


def test_a_redirect_on_the_same_host_is_followed(address: str, tmp_path: Path) -> None:
    """The hub moves files about; on its own host that is fine."""
    assert look_up(address, tmp_path, "acme/moved").config == CONFIG


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nothere", "hub_not_found"),
        ("gated", "hub_gated"),
        ("busy", "hub_unavailable"),
        ("huge", "hub_too_large"),
        ("broken", "hub_malformed"),
        ("nested", "hub_malformed"),
        ("nocommit", "hub_malformed"),
        ("foreign", "hub_redirected"),
        ("circle", "hub_redirected"),
    ],
)
def test_every_failure_has_its_code(address: str, tmp_path: Path, name: str, code: str) -> None:
    """Gated, missing, busy, huge, malformed and redirected answers can each be told apart."""
    assert failure(address, tmp_path, f"acme/{name}").code == code
    assert not list(tmp_path.glob("*.json"))


def test_a_foreign_host_is_never_asked(address: str, tmp_path: Path) -> None:
    """The redirect is refused before any request leaves for the other host."""
    error = failure(address, tmp_path, "acme/foreign")
    assert error.facts["host"] == "169.254.169.254"
    assert len(HubHandler.asked) == 1


def test_a_slow_answer_is_given_up(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer has its time, and all together have theirs, however steadily they drip."""
    monkeypatch.setattr(hub, "SECONDS_PER_ANSWER", 0.2)
    assert failure(address, tmp_path, "acme/slow").code == "hub_too_slow"
    monkeypatch.setattr(hub, "SECONDS_IN_ALL", 0.5)
    monkeypatch.setattr(hub, "SECONDS_PER_ANSWER", 5.0)
    started = time.monotonic()
    assert failure(address, tmp_path, "acme/dripping").code == "hub_too_slow"
    assert time.monotonic() - started < 2


def test_a_hub_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Nobody listens: unreachable, not an exception of the client's."""
    assert failure("http://127.0.0.1:9", tmp_path, "acme/good").code == "hub_unreachable"


@pytest.mark.parametrize(
    ("hf_id", "revision"),
    [
        ("acme", "main"),
        ("acme/../etc", "main"),
        ("acme/good/tree", "main"),
        ("acme/go od", "main"),
        ("acme/good?x=1", "main"),
        ("//evil.example/good", "main"),
        ("acme/" + "x" * 200, "main"),
        ("acme/good", "../../x"),
        ("acme/good", "a/b"),
        ("acme/good", ""),
    ],
)
def test_only_ids_of_the_hub_become_addresses(
    address: str, tmp_path: Path, hf_id: str, revision: str
) -> None:
    """Everything else is refused before a request is made."""
    assert failure(address, tmp_path, hf_id, revision).code == "hub_id_invalid"
    assert not HubHandler.asked
