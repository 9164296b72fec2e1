"""Which pipeline stage holds what."""

from __future__ import annotations

from app.core.model_spec import EVERY_STAGE, FIRST_STAGE, LAST_STAGE


def stage_layers(num_hidden_layers: int, pipeline_parallel_size: int) -> tuple[range, ...]:
    """Split the layers over the stages as vLLM does.

    What does not divide evenly goes to the stages before the last, from the second-last
    backwards. Source: vllm/distributed/utils.py `get_pp_indices` (0.32.0).
    """
    stages = pipeline_parallel_size
    share, rest = divmod(num_hidden_layers, stages)
    sizes = [share] * stages
    for offset in range(rest):
        sizes[-offset - 2] += 1
    starts = [sum(sizes[:stage]) for stage in range(stages)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def stages_by_layer(
    num_hidden_layers: int, pipeline_parallel_size: int
) -> dict[int, tuple[int, ...]]:
    """Stages that hold the tensors of each value of TensorGroup.layer."""
    last = pipeline_parallel_size - 1
    held = stage_layers(num_hidden_layers, pipeline_parallel_size)
    stages = {layer: (stage,) for stage, layers in enumerate(held) for layer in layers}
    everywhere = tuple(range(pipeline_parallel_size))
    return stages | {FIRST_STAGE: (0,), LAST_STAGE: (last,), EVERY_STAGE: everywhere}
