"""The catalogue as the JSON API lists it."""

from __future__ import annotations

from app.catalog.catalogue import Catalogue
from app.catalog.checkpoints import CatalogueCheckpoint
from app.catalog.hf_config import ConfigError
from app.catalog.models import CatalogueModel
from app.core.gpu_spec import GpuSpec
from app.core.model_spec import ModelSpec
from app.core.releases import Release
from app.web import api_schema as shape
from app.wizard.answers import DEFAULT_VLLM_VERSION


def model_list(catalogue: Catalogue) -> shape.ModelList:
    """List the models by name."""
    models = sorted(catalogue.models.values(), key=lambda each: each.name.casefold())
    return shape.ModelList(
        data_version=catalogue.data_version, models=[_model(each) for each in models]
    )


def gpu_list(catalogue: Catalogue) -> shape.GpuList:
    """List the cards by slug."""
    return shape.GpuList(
        data_version=catalogue.data_version,
        gpus=[_gpu(each.spec) for each in catalogue.gpus.values()],
        slices=[_slice(each.spec) for each in catalogue.slices.values()],
    )


def release_list(catalogue: Catalogue) -> shape.ReleaseList:
    """List the releases that have rules of their own, oldest first."""
    return shape.ReleaseList(
        data_version=catalogue.data_version,
        default=DEFAULT_VLLM_VERSION,
        releases=[_release(each) for each in catalogue.releases.rows],
    )


def capability_text(spec: GpuSpec) -> str | None:
    """Write a compute capability as `12.0`; None where a card has none."""
    capability = spec.compute_capability
    return None if capability is None else f"{capability[0]}.{capability[1]}"


def _model(entry: CatalogueModel) -> shape.ModelRow:
    spec = _spec(entry)
    return shape.ModelRow(
        slug=entry.slug,
        name=entry.name,
        maker=entry.row.maker,
        hf_id=entry.hf_id,
        architecture=None if spec is None else spec.architecture,
        num_hidden_layers=None if spec is None else spec.num_hidden_layers,
        checkpoints=[_checkpoint(each) for each in entry.checkpoints],
    )


def _spec(entry: CatalogueModel) -> ModelSpec | None:
    try:
        return entry.spec
    except ConfigError:
        return None


def _checkpoint(entry: CatalogueCheckpoint) -> shape.CheckpointRow:
    checkpoint = entry.checkpoint
    return shape.CheckpointRow(
        hf_id=checkpoint.hf_id,
        precision=checkpoint.precision,
        weights_bytes=checkpoint.weights_bytes,
        kv_cache_scheme=checkpoint.kv_cache_scheme,
        confidence=checkpoint.confidence,
        source=checkpoint.source,
    )


def _gpu(spec: GpuSpec) -> shape.GpuRow:
    return shape.GpuRow(
        slug=spec.slug,
        name=spec.name,
        architecture=spec.architecture,
        compute_capability=capability_text(spec),
        driver_memory_mib=spec.driver_memory_mib,
        total_memory_bytes=spec.total_memory_bytes,
        nvlink=spec.nvlink,
        tdp_watts=spec.tdp_watts,
    )


def _slice(spec: GpuSpec) -> shape.SliceRow:
    return shape.SliceRow(
        **_gpu(spec).model_dump(),
        mig_of=spec.mig_of,
        mig_profile=spec.mig_profile,
        mig_instances=spec.mig_instances,
    )


def _release(release: Release) -> shape.ReleaseRow:
    return shape.ReleaseRow(
        version=release.version,
        gpu_memory_utilization=release.gpu_memory_utilization,
        kv_cache_dtypes=sorted(release.kv_cache_dtypes),
        log_formats=list(release.log_formats),
        memory_estimate=release.memory is not None,
        changes=list(release.changes),
    )
