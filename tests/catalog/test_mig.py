"""MIG slices are cards of their own: sourced, named, and never among the whole ones."""

from pathlib import Path

import pytest

from app.catalog.catalogue import Catalogue, load_catalogue
from app.catalog.gpus import gpus_logged_as
from app.catalog.problems import CatalogueError


def test_slices_of_four_cards_are_there(catalogue: Catalogue) -> None:
    """Every slice names its card, is smaller than it, and is in no list of whole cards."""
    assert len(catalogue.slices) == 16
    assert {each.spec.mig_of for each in catalogue.slices.values()} == {
        "rtx-pro-6000-server", "h100-80gb-hbm3", "h100-nvl", "h200",
    }  # fmt: skip
    assert not catalogue.slices.keys() & catalogue.gpus.keys()
    for slug, each in catalogue.slices.items():
        whole = catalogue.gpus[each.spec.mig_of].spec
        assert each.spec.slug == slug
        assert each.spec.compute_capability == whole.compute_capability
        assert each.spec.driver_memory_mib is not None
        assert whole.driver_memory_mib is not None
        assert each.spec.mig_instances * each.spec.driver_memory_mib <= whole.driver_memory_mib
        assert not any(card.spec.mig_of for card in catalogue.gpus.values())


def test_what_no_source_gives_stays_unknown(catalogue: Catalogue) -> None:
    """The driver's figure has its source; what vLLM sees, bandwidth and power are not guessed."""
    for each in catalogue.slices.values():
        assert each.facts.driver_memory_mib is not None
        assert "nvidia-smi mig -lgip" in each.facts.driver_memory_mib.source
        assert each.spec.total_memory_bytes is None
        assert each.spec.tdp_watts is None
        assert set(each.unknown) == {"total_memory_gib", "memory_bandwidth_gb_s", "tdp_watts"}


def test_a_card_is_found_whole_or_sliced(catalogue: Catalogue) -> None:
    """One look-up for both; a name of neither finds nothing."""
    assert catalogue.card("h200") is catalogue.gpus["h200"]
    found = catalogue.card("h200-mig-1g.35gb")
    assert found is not None
    assert found.name == "NVIDIA H200 MIG 1g.35gb"
    assert found.spec.driver_memory_mib == 33024
    assert catalogue.card("h200-mig-9g.35gb") is None


@pytest.mark.parametrize(
    ("logged", "slugs"),
    [
        ("NVIDIA H200 MIG 2g.35gb", ["h200-mig-2g.35gb"]),
        ("NVIDIA H200", ["h200"]),
        ("H100", ["h100-80gb-hbm3", "h100-nvl", "h100-pcie"]),
        ("H200 MIG 35GB", ["h200-mig-1g.35gb", "h200-mig-2g.35gb"]),
    ],
)  # fmt: skip
def test_a_log_means_a_slice_only_where_it_says_mig(
    catalogue: Catalogue, logged: str, slugs: list[str]
) -> None:
    """The name of a whole card never means one of its slices."""
    every = {**catalogue.gpus, **catalogue.slices}
    assert [gpu.slug for gpu in gpus_logged_as(every, logged)] == slugs


FAULTS = {
    "no-such.toml": (
        'gpu = "no-such"\n[[slices]]\nprofile = "1g.10gb"\ninstances = 7\n',
        "there is no gpus/no-such.toml",
    ),
    "other.toml": (
        'gpu = "h200-nvl"\n[[slices]]\nprofile = "1g.18gb"\ninstances = 7\n',
        "the file is other.toml",
    ),
    "h200-nvl.toml": (
        'gpu = "h200-nvl"\n[[slices]]\nprofile = "7g.141gb"\ninstances = 7\n',
        "more than the card's",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(small: Path, name: str) -> None:
    """A card that is not there, a file of another name, slices that are more than their card."""
    document, message = FAULTS[name]
    fact = '[slices.memory_gib]\nvalue = 100.0\nsure = "observed"\nsource = "a listing"\n'
    (small / "mig").mkdir()
    assert load_catalogue(small).slices == {}
    (small / "mig" / name).write_text(document + fact, encoding="utf-8")
    with pytest.raises(CatalogueError) as failed:
        load_catalogue(small)
    assert any(message in each.message for each in failed.value.problems)


def test_a_profile_stands_once(small: Path, data_folder: Path) -> None:
    """The same profile twice is a fault of the file."""
    (small / "mig").mkdir()
    text = (data_folder / "mig" / "rtx-pro-6000-server.toml").read_text(encoding="utf-8")
    rows = text.partition("\n\n")[2]
    (small / "mig" / "rtx-pro-6000-server.toml").write_text(f"{text}\n{rows}", encoding="utf-8")
    with pytest.raises(CatalogueError) as failed:
        load_catalogue(small)
    assert any("twice" in each.message for each in failed.value.problems)
