"""Broken files: the message names file, row and field, and says what to do."""

import shutil
from pathlib import Path

import pytest

from app.catalog.catalogue import load_catalogue
from app.catalog.problems import CatalogueError, Problem

BROKEN = Path(__file__).parent / "broken"
FP8 = "checkpoint 1 (example/{}-FP8)"

# file → row, field, and a part of what the message says
EXPECTED = {
    "gpus/no-name.toml": ("no-name", "name", "Add it."),
    "gpus/misspelt.toml": ("misspelt", "driver_memory_mb", "Did you mean `driver_memory_mib`?"),
    "gpus/text-for-number.toml": (
        "text-for-number", "driver_memory_mib.value", 'is "97887". Write a whole number.',
    ),
    "gpus/unsure.toml": ("unsure", "driver_memory_mib.sure", 'is "probably". Use one of'),
    "gpus/no-source.toml": ("no-source", "driver_memory_mib.source", "is missing"),
    "gpus/other-slug.toml": ("another-slug", "slug", "the file is other-slug.toml"),
    "gpus/logged-twice.toml": ("logged-twice", "log_names", "already names h200-nvl"),
    "gpus/more-than-driver.toml": ("more-than-driver", "total_memory_gib", "97887 MiB"),
    "gpus/known-after-all.toml": ("known-after-all", "unknown", "lists `driver_memory_mib`"),
    "gpus/negative.toml": ("negative", "driver_memory_mib.value", "greater than 1024"),
    "gpus/not-toml.toml": ("the whole file", "(syntax)", "line 1"),
    "servers/no-such-card.toml": ("no-such-card", "gpu", "no gpus/h300-nvl.toml"),
    "servers/too-wide.toml": ("too-wide", "interconnect.cards_per_group", "the server's 2 cards"),
    "servers/half-a-card.toml": ("half-a-card", "cards", "Write a whole number."),
    "servers/no-cards.toml": ("no-cards", "cards", "at least 1"),
    "vendors/unknown-card.toml": ("unknown-card", "cards", "'h300-nvl', which the catalogue lacks"),
    "vendors/plain-http.toml": ("plain-http", "privacy.en", "^https://"),
    "vendors/no-address.toml": ("no-address", "email", 'is "sales"'),
    "vendors/nothing-sold.toml": ("nothing-sold", "servers", "is empty. Fill it in."),
    "models/no-such-precision.json": (
        "no-such-precision, " + FP8.format("no-such-precision"), "checkpoints.1.precision",
        'is "fp7". Use one of',
    ),
    "models/no-such-scheme.json": (
        "no-such-scheme, " + FP8.format("no-such-scheme"), "quantization.schemes.mlp",
        "is 'fp8'. Use one of",
    ),
    "models/no-such-class.json": (
        "no-such-class, " + FP8.format("no-such-class"),
        "checkpoints.1.quantization.schemes.ffn.[key]", "Use one of 'attn'",
    ),
    "models/no-weight.json": (
        "no-weight, " + FP8.format("no-weight"), "checkpoints.1.weights_bytes.value",
        "greater than 0",
    ),
    "models/rounded.json": (
        "rounded, " + FP8.format("rounded"), "checkpoints.1.weights_bytes.value",
        "is 1000.5. Write a whole number.",
    ),
    "models/half-a-fact.json": (
        "half-a-fact, " + FP8.format("half-a-fact"), "checkpoints.1.weights_bytes.source",
        "is missing. Add it.",
    ),
    "models/unseen.json": (
        "unseen, checkpoint 0 (example/unseen)", "source", "Say where it was seen.",
    ),
    "models/listed-twice.json": (
        "listed-twice, checkpoint 1 (Example/Listed-Twice)", "hf_id",
        "also belongs to listed-twice",
    ),
    "models/listed-elsewhere.json": (
        "llama-3.3-70b, checkpoint 1 (nvidia/Llama-3.3-70B-Instruct-FP8)", "hf_id",
        "also belongs to listed-elsewhere",
    ),
    "models/no-main-checkpoint.json": (
        "no-main-checkpoint", "hf_id", "'example/other', which is none of the checkpoints",
    ),
    "models/quantized-bf16.json": (
        "quantized-bf16, " + FP8.format("quantized-bf16"), "quantization",
        "Only `bf16` checkpoints have no quantization.",
    ),
    "models/misspelt-field.json": (
        "misspelt-field, " + FP8.format("misspelt-field"), "checkpoints.1.kv_cache_sheme",
        "Did you mean `kv_cache_scheme`?",
    ),
    "models/no-config.json": ("no-config", "config", "is missing. Add it."),
    "models/no-checkpoints.json": ("no-checkpoints", "checkpoints", "is empty. Fill it in."),
    "models/bad-runs.json": ("bad-runs", "config.layer_types", "Write [times, [entries]]."),
    "models/endless-runs.json": ("endless-runs", "config.layer_types", "4096 is the most"),
    "models/other-file-name.json": ("another-name", "slug", "the file is other-file-name.json"),
    "models/not-an-id.json": (
        "not-an-id, checkpoint 1 (just-a-name)", "checkpoints.1.hf_id", 'is "just-a-name"',
    ),
    "models/not-json.json": ("line 2", "(syntax)", "is not JSON"),
    "models/a-list.json": ("the whole file", "(syntax)", "must be an object in braces"),
    "models/latin-1.json": ("byte 31", "(syntax)", "save the file as UTF-8"),
}  # fmt: skip


def problems_of(folder: Path, vendor: str = "default") -> tuple[Problem, ...]:
    """Load a catalogue that cannot be loaded and return what is said about it."""
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(folder, vendor)
    return caught.value.problems


def test_the_small_catalogue_is_whole(small: Path) -> None:
    """Without a broken file there is no complaint: what the other tests find, they put there."""
    assert set(load_catalogue(small).models) == {"llama-3.3-70b"}


@pytest.mark.parametrize("file", EXPECTED)
def test_a_broken_file_is_described(small: Path, file: str) -> None:
    """One broken file gives one problem that names file, row and field and what to do."""
    row, field, words = EXPECTED[file]
    shutil.copy(BROKEN / file, small / file)
    vendor = Path(file).stem if file.startswith("vendors/") else "default"
    [problem] = problems_of(small, vendor)
    assert (problem.row, problem.field) == (row, field)
    assert words in problem.message
    named = "models/llama-3.3-70b.json" if row.startswith("llama-3.3-70b") else file
    assert str(problem).startswith(f"{named}: {row}, field `{field}`: ")


def test_every_broken_file_is_expected() -> None:
    """No broken file lies about unused."""
    files = {path.relative_to(BROKEN).as_posix() for path in BROKEN.rglob("*") if path.is_file()}
    assert files == EXPECTED.keys()


def test_all_problems_are_told_at_once(small: Path) -> None:
    """Three broken files give three problems in one message, in the order of their files."""
    for file in ("models/no-config.json", "gpus/no-name.toml", "servers/no-cards.toml"):
        shutil.copy(BROKEN / file, small / file)
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(small)
    files = [problem.file for problem in caught.value.problems]
    assert files == ["gpus/no-name.toml", "models/no-config.json", "servers/no-cards.toml"]
    assert str(caught.value).startswith("3 problems in the catalogue:\n")


def test_a_missing_vendor_is_named(small: Path) -> None:
    """A vendor without a file is a problem of that file."""
    [problem] = problems_of(small, "nobody")
    assert (problem.file, problem.message) == ("vendors/nobody.toml", "is missing. Add the file.")


def test_an_empty_folder_is_named(small: Path) -> None:
    """A catalogue without models is refused, and says which folder is empty."""
    (small / "models" / "llama-3.3-70b.json").unlink()
    [problem] = problems_of(small)
    assert (problem.file, problem.message) == ("models/", "is empty. Add some.")


@pytest.mark.parametrize("text", ["", "yesterday", "29.11.2026"])
def test_the_version_is_a_date(small: Path, text: str) -> None:
    """The version that stands in permalinks is a date, or the catalogue is refused."""
    (small / "VERSION").write_text(text, encoding="utf-8")
    [problem] = problems_of(small)
    assert problem.file == "VERSION"
    assert "like 2026-11-29" in problem.message


def test_broken_releases_are_told_with_the_rest(small: Path) -> None:
    """A release file that cannot be read is one problem among others, not an accident."""
    (small / "vllm" / "releases.toml").write_text("[[release]]\n", encoding="utf-8")
    shutil.copy(BROKEN / "gpus" / "no-name.toml", small / "gpus")
    files = [problem.file for problem in problems_of(small)]
    assert files == ["gpus/no-name.toml", "vllm/releases.toml"]
