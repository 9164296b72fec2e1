"""A list to choose from loses nothing that was entered."""

import re

import pytest

from tests.strict_client import StrictClient

CASE = {"model": "llama-3.3-70b", "gpu": "rtx-pro-6000-server", "max_model_len": "8192"}


def chosen(page: str, name: str) -> list[str]:
    """Return the values of a list that are marked as chosen."""
    [options] = re.findall(rf'<select id="{name}".*?</select>', page, re.DOTALL)
    return re.findall(r'<option value="([^"]*)" selected>', options)


@pytest.mark.parametrize("path", ["/de/rechner", "/en/workbench"])
@pytest.mark.parametrize("name", ["checkpoint", "kv_cache_dtype", "gpu", "server", "vllm_version"])
def test_an_entry_that_is_not_in_the_list_stays_chosen(
    client: StrictClient, path: str, name: str
) -> None:
    """An unknown slug of an old link is named, and still stands in its list, chosen last."""
    page = client.get(path, params=CASE | {name: "of&nobody"}).text
    assert f'id="{name}-error"' in page
    assert chosen(page, name)[-1] == "of&amp;nobody"


def test_a_known_entry_is_chosen_once(client: StrictClient) -> None:
    """Without a problem nothing is added to a list."""
    page = client.get("/en/workbench", params=CASE).text
    assert chosen(page, "gpu") == ["rtx-pro-6000-server"]


def test_a_server_can_be_taken_back_where_its_card_has_none(client: StrictClient) -> None:
    """The field that the message names is there, though the list holds no server of that card."""
    case = CASE | {"gpu": "h200", "server": "nobody"}
    page = client.get("/en/workbench", params=case).text
    assert page.count('href="#server"') == page.count('<select id="server"') == 1
    assert chosen(page, "server") == ["nobody"]
