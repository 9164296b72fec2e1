"""The catalogue as it is shipped: whole, sourced, and as large as it says."""

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import PRECISIONS
from app.catalog.hf_config import ConfigError
from app.catalog.models import CatalogueModel
from app.core.storage_schemes import STORAGE_SCHEMES
from app.core.units import GIB
from app.core.weights import checkpoint_bytes
from app.tools.catalogue_schema import SCHEMAS, schema_text

# 113 models were collected with 444 checkpoints, two of which differ from others in upper and lower
# case only, so 442; Qwen3 0.6B, the model of many public start logs, adds one of each.
MODELS, CHECKPOINTS, GPUS = 114, 443, 48


def test_all_models_and_cards_are_there(catalogue: Catalogue) -> None:
    """The catalogue has the models, checkpoints and cards that were collected for it."""
    assert len(catalogue.models) == MODELS
    assert sum(len(model.checkpoints) for model in catalogue.models.values()) == CHECKPOINTS
    assert len(catalogue.gpus) == GPUS


def test_servers_of_both_cards_are_there(catalogue: Catalogue) -> None:
    """The vendor's two cards come in servers of 1, 2, 4 and 8, smallest first."""
    sizes: dict[str, list[int]] = {}
    for server in catalogue.servers.values():
        sizes.setdefault(server.gpu, []).append(server.cards)
    assert sizes == {"rtx-pro-6000-server": [1, 2, 4, 8], "h200-nvl": [1, 2, 4, 8]}
    assert set(catalogue.vendor.cards) == sizes.keys()
    assert set(catalogue.vendor.servers) == catalogue.servers.keys()


def test_no_prices_are_invented(catalogue: Catalogue) -> None:
    """The default vendor names no price and links a privacy notice in both languages."""
    assert catalogue.vendor.net_prices == ()
    assert catalogue.vendor.privacy_link("de") != catalogue.vendor.privacy_link("en")
    assert catalogue.vendor.privacy_link("fr") == catalogue.vendor.privacy_link("de")


def test_sizes_that_were_published_are_there(catalogue: Catalogue) -> None:
    """Every size that was published or follows from a published element count is in the files."""
    kinds = Counter(
        checkpoint.row.weights_bytes.kind
        for model in catalogue.models.values()
        for checkpoint in model.checkpoints
        if checkpoint.row.weights_bytes
    )
    assert kinds == {
        "derived-exact-count": 179,
        "published-files": 9,
        "count-times-2": 3,
        "published-card": 2,
        "published-index": 2,
        "published-rounded": 1,
        "published-tensor-bytes": 1,
        "published-dtype-map": 1,
    }


def test_unknown_memory_of_cards_stays_unknown(catalogue: Catalogue) -> None:
    """A total that no source gives is None for the core and listed as unknown, never a guess."""
    no_driver = {gpu.slug for gpu in catalogue.gpus.values() if gpu.spec.driver_memory_mib is None}
    no_total = {gpu.slug for gpu in catalogue.gpus.values() if gpu.spec.total_memory_bytes is None}
    assert no_driver == {
        "rtx-pro-5000-72gb", "rtx-pro-4000-sff", "rtx-pro-2000", "gb10", "v100-pcie-32gb",
        "mi300x", "mi325x", "mi350x", "mi355x",
    }  # fmt: skip
    assert no_total == {
        "rtx-pro-5000-72gb", "rtx-pro-4500", "rtx-pro-4000-sff", "v100-pcie-32gb", "gaudi-3",
    }  # fmt: skip
    for slug in no_driver:
        assert "driver_memory_mib" in catalogue.gpus[slug].unknown
    for slug in no_total:
        assert "total_memory_gib" in catalogue.gpus[slug].unknown


def test_the_vendors_cards_are_as_logged(catalogue: Catalogue) -> None:
    """RTX PRO 6000 Server Edition and H200 NVL have the totals that drivers and logs print."""
    server_edition = catalogue.gpus["rtx-pro-6000-server"].spec
    assert (server_edition.driver_memory_mib, server_edition.compute_capability) == (97887, (12, 0))
    assert server_edition.total_memory_bytes == round(94.97 * GIB)
    h200 = catalogue.gpus["h200-nvl"].spec
    assert (h200.driver_memory_mib, h200.compute_capability) == (143771, (9, 0))
    assert h200.total_memory_bytes == round(139.8 * GIB)
    assert catalogue.gpus["mi300x"].spec.compute_capability is None
    assert catalogue.gpus["gb10"].spec.integrated_memory


def test_every_precision_word_is_used(catalogue: Catalogue) -> None:
    """Each precision a person may ask for exists in some checkpoint: no dead word in the API."""
    used = {each.precision for model in catalogue.models.values() for each in model.checkpoints}
    assert used == set(PRECISIONS)


def test_quantised_checkpoints_say_how(catalogue: Catalogue) -> None:
    """A quantised checkpoint names at least one class of layers and a scheme for it."""
    for model in catalogue.models.values():
        for each in model.checkpoints:
            schemes = dict(each.checkpoint.quantization.schemes)
            stored = {scheme for scheme in schemes.values() if scheme in STORAGE_SCHEMES}
            assert bool(stored) == (each.precision != "bf16"), each.hf_id


def test_kv_schemes_are_those_that_were_read(catalogue: Catalogue) -> None:
    """Declared FP8 caches are known, declared absence is known, the rest says it is unknown."""
    llama = catalogue.models["llama-3.3-70b"]
    [fp8] = llama.select("nvidia/Llama-3.3-70B-Instruct-FP8")
    assert (fp8.checkpoint.kv_cache_scheme, fp8.kv_cache_scheme_known) == ("fp8_e4m3", True)
    [v3] = catalogue.models["deepseek-v3"].select("nvidia/DeepSeek-V3-0324-NVFP4")
    assert (v3.checkpoint.kv_cache_scheme, v3.kv_cache_scheme_known) == (None, True)
    [dynamic] = llama.select("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    assert (dynamic.checkpoint.kv_cache_scheme, dynamic.kv_cache_scheme_known) == (None, False)
    assert "kv_cache_scheme" in dynamic.unknowns


def test_drafts_are_included_where_the_files_have_them(catalogue: Catalogue) -> None:
    """Optional parts follow the files: copies of embeddings, no drafts, a checkpoint without."""

    def parts(slug: str, hf_id: str = "") -> frozenset[str]:
        return catalogue.models[slug].select(hf_id)[0].checkpoint.includes

    assert parts("deepseek-v3") == {"mtp", "mtp_shared"}
    assert parts("glm-4.6") == {"mtp"}
    assert parts("qwen3-coder-next") == frozenset()
    assert parts("qwen3.5-122b-a10b") == {"mtp", "vision"}
    assert parts("qwen3.5-122b-a10b", "nvidia/Qwen3.5-122B-A10B-NVFP4") == {"vision"}


@pytest.mark.parametrize(
    ("slug", "codes"),
    [
        ("llama-3.1-8b", set()),
        ("llama-3.3-70b", {"config"}),
        ("command-a-03-2025", {"config", "context_length"}),
        ("devstral-2-123b", {"config", "element_count_not_published", "license", "gated"}),
        ("kimi-k2", {"element_count_differs"}),
        ("kimi-k3", {"element_count_differs", "cache_not_checked"}),
    ],
)
def test_what_is_not_known_is_marked(catalogue: Catalogue, slug: str, codes: set[str]) -> None:
    """A model carries a code for everything nobody read at its source."""
    assert {unknown.code for unknown in catalogue.models[slug].unknowns} == codes


def test_configs_are_reduced_to_what_decides_memory(catalogue: Catalogue) -> None:
    """No config carries token ids, training or generation settings of somebody else's file."""
    for model in catalogue.models.values():
        keys = set(keys_of(model.row.config))
        assert not {key for key in keys if key.endswith("_token_id")}
        assert not keys & {"initializer_range", "transformers_version", "auto_map", "use_cache"}
        assert {"architectures", "model_type"} <= model.config.keys()


def keys_of(table: object) -> list[str]:
    """Return the keys of a config and of the tables in it."""
    if not isinstance(table, dict):
        return []
    return [*table, *(key for value in table.values() for key in keys_of(value))]


def test_coded_lists_are_as_long_as_the_model(catalogue: Catalogue) -> None:
    """`layer_types`, written as runs in the files, has one entry a layer once it is read."""
    seen = 0
    for model in catalogue.models.values():
        text = model.config.get("text_config", model.config)
        if "layer_types" in text:
            seen += 1
            assert len(text["layer_types"]) == text["num_hidden_layers"], model.slug
    assert seen > 10


def test_every_model_can_be_read(catalogue: Catalogue) -> None:
    """The core's description of each model is built from its row, once, when first asked for."""
    for model in catalogue.models.values():
        assert model.spec.num_hidden_layers > 0, model.slug
        assert model.spec is model.spec


@pytest.mark.slow
def test_published_sizes_follow_from_the_shapes(catalogue: Catalogue) -> None:
    """Bytes computed from shapes and schemes are within 0.1 % of every size in the catalogue."""
    off = {}
    for model in catalogue.models.values():
        for each in model.checkpoints:
            published = each.checkpoint.weights_bytes
            if published:
                ours = checkpoint_bytes(model.spec_of(each.hf_id), each.checkpoint)
                off[each.hf_id] = ours / published - 1
    assert len(off) > 190
    assert {hf_id: error for hf_id, error in off.items() if abs(error) > 0.001} == {}


def test_a_checkpoint_may_differ_in_its_config(catalogue: Catalogue) -> None:
    """The re-release of DeepSeek-V4-Flash has three draft layers; its siblings keep the one."""
    model = catalogue.models["deepseek-v4-flash"]
    drafts = {each.hf_id: len(model.spec_of(each.hf_id).mtp_layers) for each in model.checkpoints}
    assert drafts.pop("deepseek-ai/DeepSeek-V4-Flash-0731") == 3
    assert set(drafts.values()) == {1}
    assert model.spec_of(model.hf_id) is model.spec


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_up_to_date(data_folder: Path, name: str) -> None:
    """The JSON Schema in `data/schema` is the one the loader uses; else run catalogue_schema."""
    shipped = (data_folder / "schema" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert shipped == schema_text(name)


def test_model_files_fit_the_json_schema(data_folder: Path) -> None:
    """An editor that checks the files against the JSON Schema finds nothing, and finds a fault."""
    schema = json.loads((data_folder / "schema" / "model.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for path in (data_folder / "models").glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert list(validator.iter_errors(document)) == [], path.name
    document["checkpoints"][0]["precision"] = "fp7"
    assert not validator.is_valid(document)


def test_a_model_that_cannot_be_read_breaks_nothing_else(catalogue: Catalogue) -> None:
    """A config that cannot be read harms nobody before the model itself is asked for."""
    row = catalogue.models["llama-3.1-8b"].row
    odd = CatalogueModel(row, {"architectures": ["NobodyKnows"], "model_type": "nobody"}, ())
    assert odd.slug == "llama-3.1-8b"
    with pytest.raises(ConfigError):
        _ = odd.spec
