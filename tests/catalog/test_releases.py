"""Which release answers for a version, and what is wrong with a row that cannot be used."""

import shutil
from pathlib import Path

import pytest

from app.catalog.releases import ReleaseDataError, Releases, UnknownReleaseError, load_releases
from app.main import ROOT


@pytest.fixture(scope="module")
def releases() -> Releases:
    """Return the shipped rows."""
    return load_releases(ROOT / "data" / "vllm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the shipped rows to break."""
    for name in ("vllm", "measurements"):
        shutil.copytree(ROOT / "data" / name, tmp_path / name)
    return tmp_path / "vllm"


@pytest.mark.parametrize(
    ("asked", "row", "notice"),
    [
        ("0.32.0", "0.32.0", ""),
        ("v0.32.0", "0.32.0", ""),
        ("0.32", "0.32.0", ""),
        (" 0.11.2 ", "0.11.2", ""),
        ("0.32.1", "0.32.0", "nearest_below"),
        ("0.19.99", "0.19.1", "nearest_below"),
        ("0.33.0rc2", "0.33.0", "approximate"),
        ("0.32.0.post1", "0.32.0", "approximate"),
        ("0.20.1.dev12+g1234abc", "0.20.1", "approximate"),
        ("nightly", "0.33.0", "newest"),
        ("main", "0.33.0", "newest"),
        ("0.34.0", "0.33.0", "extrapolated"),
        ("1.0", "0.33.0", "extrapolated"),
        ("0.6.3", "0.8.5", "oldest"),
    ],
)
def test_a_version_finds_its_row(releases: Releases, asked: str, row: str, notice: str) -> None:
    """Exact, nearest below, approximate, newest, extrapolated or oldest, and it is said which."""
    release, said = releases.release_for(asked)
    assert (release.version, said) == (row, notice)


@pytest.mark.parametrize("text", ["", "latest-ish", "0.x", "32", "0.32.0; drop", "9" * 400])
def test_text_that_is_no_version_is_refused(releases: Releases, text: str) -> None:
    """Nothing is guessed from text that names no version."""
    with pytest.raises(UnknownReleaseError):
        releases.release_for(text)


def test_every_release_since_0_8_5_has_a_row(releases: Releases) -> None:
    """Every release that changed something or was observed, in order, newest last."""
    versions = [row.version for row in releases.rows]
    assert versions == sorted(versions, key=lambda v: tuple(map(int, v.split("."))))
    assert versions[0] == "0.8.5"
    assert {f"0.{minor}.0" for minor in range(9, 34)} <= set(versions)


def test_rows_are_a_change_log(releases: Releases) -> None:
    """A row names the facts that moved and where they were read; the rest is the row's before."""
    by_version = {row.version: row for row in releases.rows}
    assert "tokens_rule" in by_version["0.20.1"].changes
    assert by_version["0.20.2"].changes == ()
    assert by_version["0.20.2"].tokens_rule == by_version["0.20.1"].tokens_rule
    assert all(row.sources[0] for row in releases.rows)


def test_backends_follow_their_own_rows(releases: Releases) -> None:
    """A later row of a backend replaces the earlier from its release on, and no sooner."""

    def dtypes(version: str) -> frozenset[str]:
        book = releases.release_for(version)[0].backends
        assert book is not None
        backend = book.named("FLASHINFER")
        assert backend is not None
        return backend.kv_cache_dtypes

    assert "nvfp4" not in dtypes("0.20.2")
    assert "nvfp4" in dtypes("0.21.0")
    oldest = releases.rows[0].backends
    assert oldest is not None
    assert oldest.named("TURBOQUANT") is None


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("releases.toml", "tokens_rule", "token_rule", "release 0.8.5: unknown field token_rule"),
        ("releases.toml", 'tokens_rule = "slots"\n', "", "0.8.5: missing field tokens_rule"),
        ("releases.toml", 'version = "0.9.2"', 'version = "0.8.0"', "0.8.0 stands after"),
        ("releases.toml", "min_memory_gib = 70", "min_gib = 70", "release 0.8.5"),
        ("backends.toml", "head_size_multiple = 8", "head_multiple = 8", "backend FLASH_ATTN"),
        ("backends.toml", 'since = "0.13.0"', 'since = "0.99.0"', "not in the order"),
        ("backends.toml", "\n[reasons]\n", "\n[other]\n", "reasons"),
    ],
)
def test_a_broken_row_is_named(folder: Path, file: str, old: str, new: str, said: str) -> None:
    """The message names the file, the row and the field."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=file.removesuffix(".toml")) as raised:
        load_releases(folder)
    assert said in str(raised.value)


def test_an_empty_file_is_refused(folder: Path) -> None:
    """Without a row nothing could be answered."""
    (folder / "releases.toml").write_text("", encoding="utf-8")
    with pytest.raises(ReleaseDataError, match="no release row"):
        load_releases(folder)
