"""The Accuracy page: what the file says, misses included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.catalog.accuracy import load_accuracy
from app.main import ROOT
from tests.strict_client import StrictClient, parse_strictly

FILE = ROOT / "data" / "measurements" / "accuracy.json"
PATHS = {"de": "/de/genauigkeit", "en": "/en/accuracy"}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "en"])
def test_every_start_stands_on_the_page(client: StrictClient, language: str) -> None:
    """Each scored start has a row, and each unusable one too."""
    table = load_accuracy(FILE)
    tree = parse_strictly(client.get(PATHS[language]).text)
    rows = [each for each in tree.iter("table") if each.get("class") == "starts"]
    assert len(list(rows[0].iter("tr"))) == len(table.starts) + 1
    text = " ".join("".join(tree.itertext()).split())
    assert str(len(table.unusable)) in text
    assert all(each.model in text for each in table.unusable)


def test_misses_are_named(client: StrictClient) -> None:
    """Every start outside its range stands in the list of misses, with the gap."""
    table = load_accuracy(FILE)
    missed = [each for each in table.starts if each.covered is False and not each.failed]
    tree = parse_strictly(client.get(PATHS["en"]).text)
    section = next(each for each in tree.iter("section") if each.get("aria-labelledby") == "misses")
    items = ["".join(each.itertext()) for each in section.iter("li")]
    assert len(items) == len(missed) > 0
    for start, item in zip(missed, items, strict=True):
        assert f"{abs(start.available_error_gib or 0):.2f}\u202fGiB" in item


@pytest.mark.slow
def test_a_start_leads_to_its_case(client: StrictClient) -> None:
    """The name of a start is a link to the workbench with the start's own inputs."""
    tree = parse_strictly(client.get(PATHS["en"]).text)
    table = next(each for each in tree.iter("table") if each.get("class") == "starts")
    for link in list(table.iter("a"))[::12]:
        assert client.get(link.get("href") or "").status_code == 200


def test_a_missing_figure_is_refused(tmp_path: Path) -> None:
    """A file without one of its figures is not read as if it had none."""
    table = json.loads(FILE.read_text(encoding="utf-8"))
    del table["summary"]["coverage_by_source"]
    broken = tmp_path / "accuracy.json"
    broken.write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(KeyError, match="coverage_by_source"):
        load_accuracy(broken)
