"""The matrix: every card in every layout, each cell as the sizing itself answers."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.cpu_time import cpu_seconds
from tests.strict_client import StrictClient

LLAMA = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "max_model_len": "8192",
}
CARDS = json.dumps(["rtx-pro-6000-server", "h200-nvl"])
LAYOUTS = json.dumps([{}, {"replicas": 2}, {"tensor_parallel_size": 2}])


def rows(client: StrictClient, **inputs: str) -> list[dict[str, Any]]:
    """Return the rows of a matrix that is answered."""
    response = client.get(f"/api/v1/matrix?{urlencode({**LLAMA, **inputs})}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["rows"]
    return found


def test_asked_cells_come_card_by_card(client: StrictClient) -> None:
    """Two cards in three layouts are six rows, with the planned 12, 24, 78 and 44."""
    found = rows(client, gpus=CARDS, layouts=LAYOUTS)
    cells = [
        (each["gpu"], each["layout"]["cards"], each["planning_requests"]) for each in found[:4]
    ]
    assert len(found) == 6
    assert cells == [
        ("rtx-pro-6000-server", 1, 12),
        ("rtx-pro-6000-server", 2, 24),
        ("rtx-pro-6000-server", 2, 78),
        ("h200-nvl", 1, 44),
    ]


def test_a_cell_is_what_the_sizing_answers(client: StrictClient) -> None:
    """Every figure of a row is that of the same card and layout asked alone."""
    for row in rows(client, gpus=CARDS, layouts=LAYOUTS):
        layout = {
            name: str(value).lower()
            for name, value in row["layout"].items()
            if name not in {"cards", "server"}
        }
        query = urlencode({**LLAMA, "gpu": row["gpu"], **layout})
        alone = client.get(f"/api/v1/sizing?{query}").json()
        assert row["ok"] == alone["ok"]
        assert row["kv_cache_size_tokens"] == alone["kv_cache_size_tokens"]
        assert row["max_concurrency"] == alone["max_concurrency"]
        assert row["planning_requests"] == alone["planning"]["requests"]
        assert row["verdict_requests"] == alone["verdict"]["requests"]


def test_without_lists_all_cards_and_the_usual_layouts_are_sized(client: StrictClient) -> None:
    """The vendor's cards come first; losers carry the reason they lose."""
    found = rows(client)
    cards = list(dict.fromkeys(each["gpu"] for each in found))
    assert len(cards) == 48
    assert cards[0] == "rtx-pro-6000-server"
    assert len(found) == 48 * 12
    losers = [each for each in found if not each["ok"]]
    assert losers
    assert all(each["reason"]["code"] for each in losers)


def test_cards_may_be_listed_with_commas(client: StrictClient) -> None:
    """A list of slugs needs no JSON."""
    found = rows(client, gpus="h200-nvl,l40s", layouts="[{}]")
    assert [each["gpu"] for each in found] == ["h200-nvl", "l40s"]


def test_slices_are_sized_where_they_are_asked_for(client: StrictClient) -> None:
    """Named in the list a slice has its rows; groups of it carry their reason."""
    layouts = '[{}, {"tensor_parallel_size": 2}]'
    small = {"model": "llama-3.1-8b", "checkpoint": ""}
    found = rows(client, **small, gpus="h200-mig-3g.71gb", layouts=layouts)
    assert [each["ok"] for each in found] == [True, False]
    assert found[1]["reason"]["code"] == "mig_not_joined"


@pytest.mark.parametrize(
    ("inputs", "field", "code"),
    [
        ({"gpus": "h200-nv"}, "gpus", "unknown_gpu"),
        ({"gpus": "[1"}, "gpus", "not_a_list"),
        ({"layouts": "{}"}, "layouts", "not_a_list"),
        ({"layouts": "[1]"}, "layouts", "not_an_object"),
        ({"layouts": '[{"tensor_parallel_size": 0}]'}, "layouts", "out_of_bounds"),
        ({"layouts": '[{"tp": 2}]'}, "layouts", "unknown_name"),
        ({"layouts": '[{"gpu": "l40s"}]'}, "layouts", "unknown_name"),
        ({"layouts": '[{"replicas": "\\ud800"}]'}, "layouts", "not_a_list"),
        ({"layouts": json.dumps([{}] * 65)}, "layouts", "not_a_list"),
        ({"gpu": "l40s"}, "gpu", "unknown_name"),
        ({"tensor_parallel_size": "2"}, "tensor_parallel_size", "unknown_name"),
        ({"model": "x"}, "model", "unknown_model"),
    ],
)
def test_bad_lists_are_named(
    client: StrictClient, inputs: dict[str, str], field: str, code: str
) -> None:
    """What cannot be read in a list is a 422 that names the list."""
    response = client.get(f"/api/v1/matrix?{urlencode({**LLAMA, **inputs})}")
    assert response.status_code == 422, response.text
    details = [(each["loc"][1], each["code"]) for each in response.json()["detail"]]
    assert (field, code) in details


@pytest.mark.slow
def test_the_largest_matrix_takes_seconds(client: StrictClient) -> None:
    """All cards in 64 layouts of many stages, the most one may ask for, keep nobody waiting."""
    deep = json.dumps([{"pipeline_parallel_size": stages} for stages in range(65, 129)])
    gemma = {"model": "gemma-3-27b", "checkpoint": "bf16", "layouts": deep}
    assert len(rows(client, **gemma)) > 2000
    assert cpu_seconds(lambda: rows(client, **gemma), rounds=1) < 6
