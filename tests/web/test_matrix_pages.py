"""The matrix pages: figures as everywhere else, filters and order by plain addresses."""

import html
import re

import pytest

from tests.strict_client import StrictClient

pytestmark = pytest.mark.slow

LLAMA = "model=llama-3.3-70b&checkpoint=nvidia/Llama-3.3-70B-Instruct-FP8&max_model_len=8192"


def rows(text: str) -> list[tuple[str, list[str]]]:
    """Return the name and the texts of the cells of every line of the matrix."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    found = []
    for line in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
        name = re.search(r"<th[^>]*>(.*?)</th>", line, re.DOTALL)
        cells = re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL)
        assert name is not None
        plain = [" ".join(re.sub(r"<[^>]+>", "", cell).split()) for cell in cells]
        found.append((html.unescape(name[1]).strip(), plain))
    return found


DASH = "\u2013"


def test_the_vendors_worked_figures_stand_in_the_matrix(client: StrictClient) -> None:
    """One card 12, two copies 24, a pair 78; one H200 NVL 44."""
    found = dict(rows(client.get(f"/en/matrix?{LLAMA}").text))
    assert found["RTX PRO 6000 Blackwell Server Edition"][1:4] == ["12", "24", "78"]
    assert found["H200 NVL"][1] == "44"


def test_without_a_case_an_example_is_shown(client: StrictClient) -> None:
    """The bare address answers with a whole matrix, in both languages the same figures."""
    english, german = (client.get(f"/{lang}/matrix").text for lang in ("en", "de"))
    assert len(rows(english)) > 40
    first = [cells[1:] for _, cells in rows(english)][:2]
    assert [cells[1:] for _, cells in rows(german)][:2] == first


def test_an_empty_cell_says_why(client: StrictClient) -> None:
    """A card too small for the weights shows a dash with its reason, and the list explains it."""
    text = client.get(f"/en/matrix?{LLAMA}").text
    found = dict(rows(text))
    assert found["L4"][1] == f"{DASH} weights"
    assert "The weights are larger than what is free on a card." in text


@pytest.mark.parametrize("version", ["0.8.5", "0.9.0"])
@pytest.mark.parametrize("page", ["/en/matrix", "/en/matrix/server"])
def test_a_release_that_nobody_can_estimate_has_planned_figures(
    client: StrictClient, page: str, version: str
) -> None:
    """The planning rule knows no release; what such a release prints is a dash with its reason."""
    asked = f"{page}?{LLAMA}&vllm_version={version}"
    planned = client.get(f"{asked}&show=requests").text
    assert any(cell.isdecimal() for _, cells in rows(planned) for cell in cells)
    printed = client.get(f"{asked}&show=tokens").text
    assert f"{DASH} not known" in {cell for _, cells in rows(printed) for cell in cells}
    assert "No start of this release is known well enough" in printed


def test_a_losing_layout_says_to_what(client: StrictClient) -> None:
    """DeepSeek-V3.2: tensor parallelism copies the latent cache; what holds more is named."""
    query = "model=deepseek-v3.2&kv_cache_dtype=fp8&max_model_len=32768&cards=8"
    text = client.get(f"/en/matrix?{query}").text
    plain = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    assert "Latent attention (MLA) copies the cache to each of 8 cards." in plain
    assert re.search(r"TP 8 · DCP 8 holds [0-9.]+ (to [0-9.]+ )?times as much", plain)
    assert re.search(r"DP 8 · EP holds [0-9.]+ (to [0-9.]+ )?times as much", plain)


def test_lines_are_sorted_by_any_column(client: StrictClient) -> None:
    """Sorting by a layout puts its largest figure first and its empty cells last."""
    found = rows(client.get(f"/en/matrix?{LLAMA}&sort=1xtp2").text)
    column = [cells[3] for _, cells in found]
    numbers = [int(cell.replace(",", "")) for cell in column if not cell.startswith(DASH)]
    assert numbers == sorted(numbers, reverse=True)
    assert all(cell.startswith(DASH) for cell in column[len(numbers) :])
    names = [name for name, _ in rows(client.get(f"/en/matrix?{LLAMA}&sort=name").text)]
    assert names == sorted(names, key=str.casefold)


def test_filters_leave_lines_and_columns_out(client: StrictClient) -> None:
    """Sold cards alone; what fits alone; servers of one size alone."""
    sold = rows(client.get(f"/en/matrix?{LLAMA}&sold=true&cards=2").text)
    assert len(sold) == 2
    assert {len(cells) for _, cells in sold} == {3}
    fitting = rows(client.get(f"/en/matrix?{LLAMA}&fitting=true&cards=1").text)
    assert fitting
    assert all(cells[1] != "0" and not cells[1].startswith(DASH) for _, cells in fitting)


@pytest.mark.parametrize("show", ["requests", "planned", "tokens", "concurrency", "per_card"])
def test_every_figure_can_be_shown(client: StrictClient, show: str) -> None:
    """Each figure fills the table; tokens are those of the sizing's own page."""
    found = dict(rows(client.get(f"/en/matrix?{LLAMA}&show={show}&sold=true&cards=1").text))
    cell = found["H200 NVL"][1]
    assert re.fullmatch(r"[0-9,]+(\.[0-9])?", cell)
    if show == "tokens":
        sizing = client.get(f"/api/v1/sizing?{LLAMA}&gpu=h200-nvl").json()
        assert cell == f"{sizing['kv_cache_size_tokens']:,}"


def test_a_cell_leads_to_its_own_result(client: StrictClient) -> None:
    """The link of a cell opens a page whose verdict is the figure of the cell."""
    text = client.get(f"/en/matrix?{LLAMA}&sold=true&cards=2").text
    links = re.findall(r'<td class="num shade--\d"><a href="([^"]+)">([0-9,]+)</a>', text)
    assert len(links) == 4
    for href, figure in links:
        page = client.get(html.unescape(href)).text
        assert f"{figure} requests of 8,192 tokens fit at the same time" in page


@pytest.mark.parametrize("query", ["show=x&sort=%00&cards=3&sold=maybe&precision=fp1", "server=x"])
def test_options_nobody_offers_are_left_out(client: StrictClient, query: str) -> None:
    """A mistyped option is no error."""
    assert client.get(f"/en/matrix?{LLAMA}&{query}").status_code == 200
    assert client.get(f"/de/matrix/server?{query}").status_code == 200


def test_a_wrong_model_is_named(client: StrictClient) -> None:
    """What cannot be read is a 422 with the field, never an empty table."""
    response = client.get("/en/matrix?model=llamma-3.3-70b")
    assert response.status_code == 422
    assert "Error:" in response.text


def test_all_models_on_one_server(client: StrictClient) -> None:
    """Every model of the catalogue is a line; the smallest server holds fewer of them."""
    large = rows(client.get("/en/matrix/server?server=8x-h200-nvl&fitting=true").text)
    small = rows(client.get("/en/matrix/server?server=1x-rtx-pro-6000-server&fitting=true").text)
    assert len(rows(client.get("/en/matrix/server?server=8x-h200-nvl").text)) > 100
    assert len(large) > len(small) > 20


def test_links_keep_the_frame_they_stand_in(client: StrictClient) -> None:
    """In an embedding site every cell keeps theme and accent, and stays inside the frame."""
    text = client.get(f"/embed/en/matrix?{LLAMA}&theme=dark&sold=true").text
    links = re.findall(r'<td class="num[^"]*"><a href="([^"]+)">', text)
    assert links
    assert all(link.startswith("/embed/en/workbench?") for link in links)
    assert all(link.endswith("theme=dark") for link in links)
