"""Which decoder layers a pipeline stage holds."""

from __future__ import annotations


def stage_layers(num_hidden_layers: int, pipeline_parallel_size: int) -> tuple[range, ...]:
    """Split the layers over the stages as vLLM does.

    What does not divide evenly goes to the stages before the last, from the second-last
    backwards. Source: vllm/distributed/utils.py `get_pp_indices` (0.32.0).
    """
    stages = pipeline_parallel_size
    share, rest = divmod(num_hidden_layers, stages)
    sizes = [share] * stages
    for offset in range(rest):
        sizes[-offset - 2 if stages > 1 else 0] += 1
    starts = [sum(sizes[:stage]) for stage in range(stages)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))
