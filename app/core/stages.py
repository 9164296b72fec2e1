"""How pipeline parallelism spreads layers over stages.

Source: vllm/distributed/utils.py `get_pp_indices`.
"""

from __future__ import annotations


def layers_per_stage(num_layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage; what is left over goes to the second-last stage and those before it."""
    counts = [num_layers // stages] * stages
    for extra in range(2, num_layers % stages + 2):
        counts[-extra] += 1
    return tuple(counts)


def stage_of_layers(num_layers: int, stages: int) -> tuple[int, ...]:
    """Stage on which each layer lies."""
    return tuple(
        stage
        for stage, count in enumerate(layers_per_stage(num_layers, stages))
        for _ in range(count)
    )
