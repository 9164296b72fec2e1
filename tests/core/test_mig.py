"""MIG slices: sized like small cards, copies allowed, groups refused."""

from dataclasses import replace

import pytest

from app.core.layout import Layout
from app.core.sizing import size
from tests.core.memory_case import card, request

SLICE = replace(
    card(total_gib=None, driver_mib=24 * 1024),
    slug="card-mig-1g.24gb",
    mig_of="card",
    mig_profile="1g.24gb",
    mig_instances=4,
)


@pytest.mark.parametrize(
    ("layout", "joined"),
    [
        (Layout(tensor_parallel_size=2), 2),
        (Layout(pipeline_parallel_size=2), 2),
        (Layout(data_parallel_size=4), 4),
        (Layout(tensor_parallel_size=2, data_parallel_size=2, replicas=2), 4),
    ],
)
def test_slices_do_not_work_as_a_group(layout: Layout, joined: int) -> None:
    """Whatever joins several slices in one server is refused, with their number."""
    reason = size(request(gpu=SLICE, layout=layout)).reason
    assert reason is not None
    assert reason.code == "mig_not_joined"
    assert dict(reason.numbers) == {"slices": joined, "mig_instances": 4}
    whole = size(request(layout=layout)).reason
    assert whole is None or whole.code != "mig_not_joined"


def test_each_slice_may_hold_a_copy() -> None:
    """Four copies on four slices promise four times what one does."""
    one = size(request(gpu=SLICE))
    four = size(request(gpu=SLICE, layout=Layout(replicas=4)))
    assert one.ok
    assert four.verdict_requests == 4 * one.verdict_requests


def test_a_slice_says_what_it_is_and_how_sure_its_memory_is() -> None:
    """The driver's figure gives a range of what vLLM sees, and the answer names both."""
    codes = {each.code for each in size(request(gpu=SLICE)).assumptions}
    assert {"sliced_card", "total_memory_from_driver"} <= codes
    assert "sliced_card" not in {each.code for each in size(request()).assumptions}


def test_a_slice_gets_the_batch_sizes_of_a_small_card() -> None:
    """What vLLM falls back to in a container is what the memory of a slice gives anyway."""
    resolved = size(request(gpu=SLICE)).resolved
    assert resolved is not None
    assert (resolved.max_num_batched_tokens, resolved.max_num_seqs) == (2048, 256)
