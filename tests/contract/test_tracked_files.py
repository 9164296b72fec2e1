"""What every file of the repository must keep: no trace of a machine, vendored files unchanged."""

import hashlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from app.main import ROOT

TOP_LEVEL = {
    ".ci", ".dockerignore", ".editorconfig", ".gitignore", "CHANGELOG.md", "Dockerfile", "Makefile",
    "README.md", "SECURITY.md", "app", "data", "docs", "pyproject.toml", "requirements-dev.lock",
    "requirements.lock", "static", "templates", "tests",
}  # fmt: skip
VENDORED = ("static/vendor", "tests/vendor")
# with one-letter classes, so that this file does not contain what it looks for
# vLLM's image keeps models in the cache folder of its root account: that path is not a machine's.
MACHINE_PATH = re.compile(r"/[w]ork/|/[r]oot/(?!\.cache/huggingface)|/[h]ome/\w")
REGISTRY_HOST = re.compile(
    r"[p]ypi\.org|python[h]osted\.org|registry\.[n]pmjs|deb\.[d]ebian\.org", re.IGNORECASE
)
LOCK_ADDRESS = re.compile(r"://|--(?:extra-)?index-url|--find-links")


def tracked() -> list[str]:
    """Return the paths that git tracks; a checkout without git has nothing to compare."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - whichever git the developer uses
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def traces(text: str) -> list[str]:
    """Return paths of a machine and hosts of package registries in a text."""
    return MACHINE_PATH.findall(text) + REGISTRY_HOST.findall(text)


def test_no_file_names_a_machine_or_a_registry() -> None:
    """No tracked file contains a path of somebody's machine or the host of a registry."""
    found = {
        name: hits
        for name in tracked()
        if not name.startswith(VENDORED)
        and (hits := traces((ROOT / name).read_bytes().decode("utf-8", "replace")))
    }
    assert found == {}


def test_traces_are_found_where_they_are() -> None:
    """The check reports a home folder and a registry, and passes an ordinary text."""
    assert traces("see {}home/ann/x".format("/"))
    assert traces("from files.python{}.org".format("hosted"))
    assert traces("https://docs.vllm.ai and app/core") == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_locks_are_hashed_and_name_no_host(lock: str) -> None:
    """Each pinned package has a hash, and no line says where to download from."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    pins = re.findall(r"^[\w.\-\[\]]+==", text, re.MULTILINE)
    blocks = re.split(r"^(?=[\w.\-\[\]]+==)", text, flags=re.MULTILINE)[1:]
    assert len(pins) == len(blocks) > 0
    assert all("--hash=sha256:" in block for block in blocks)
    assert LOCK_ADDRESS.findall(text) == []


def test_locks_agree() -> None:
    """Both locks pin the same versions, so that one environment serves both."""

    def pins(name: str) -> set[str]:
        text = (ROOT / name).read_text(encoding="utf-8")
        return set(re.findall(r"^([\w.\-\[\]]+==[^ \\;]+)", text, re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


@pytest.mark.parametrize("folder", VENDORED)
def test_vendored_files_are_unchanged(folder: str) -> None:
    """Every vendored file is listed with its sha256, and each has a licence."""
    root = ROOT / folder
    listed = tomllib.loads((root / "VENDORED.toml").read_text(encoding="utf-8"))
    present = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    expected = {
        f"{name}/{file}": digest
        for name, entry in listed.items()
        for file, digest in entry["sha256"].items()
    }
    assert present == expected.keys() | {"VENDORED.toml"}
    assert {file: _sha256(root / file) for file in expected} == expected
    assert all("LICENSE" in entry["sha256"] and entry["licence"] for entry in listed.values())


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_top_level_holds_only_what_was_agreed() -> None:
    """A new file or folder at the top needs a reason; most things have a room already."""
    assert {name.split("/")[0] for name in tracked()} <= TOP_LEVEL
