"""The need page and the comparison, as somebody would use them."""

import html
import re
from urllib.parse import urlencode

import pytest

from tests.strict_client import StrictClient


def plain(text: str) -> str:
    """Return the text of a page as it is read."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_example_is_a_rag_assistant_for_200_users(client: StrictClient) -> None:
    """The bare address shows a worked case: Little's law, the peak, and a server that meets it."""
    text = plain(client.get("/en/need").text)
    assert "20.0 s = 6.7 requests in flight on average" in text
    assert "within 13 in 99 % of moments" in text
    assert re.search(r"One card: \d+ requests in flight where 13 are needed", text)


@pytest.mark.slow
def test_thirty_developers_on_gpt_oss(client: StrictClient) -> None:
    """30 developers with 128K contexts: four-bit weights as published, a curve, a link to each."""
    query = urlencode(
        {"model": "gpt-oss-120b", "preset": "coding", "users": "30", "requests_per_hour": "40"}
    )
    response = client.get(f"/en/need?{query}")
    text = plain(response.text)
    assert "MXFP4" in text
    assert "When preemption begins" in text
    links = re.findall(r'<th scope="row"><a href="([^"]+)">', response.text)
    assert links
    assert client.get(html.unescape(links[0])).status_code == 200


def test_a_known_peak_beats_the_number_of_users(client: StrictClient) -> None:
    """Requests in flight that were measured count; Little's law is not mentioned."""
    text = plain(client.get("/en/need?model=llama-3.1-8b&peak_requests=40&users=9000").text)
    assert "where 40 are needed" in text
    assert "Little" not in text


def test_full_length_is_the_verdict_of_the_sizing(client: StrictClient) -> None:
    """Without lengths the requests of one card are the vendor's 12 and 44."""
    query = "model=llama-3.3-70b&preset=full&max_model_len=8192&peak_requests=12&bits=8"
    text = client.get(f"/en/need?{query}").text
    cells = re.findall(r'<td class="num">([0-9,]+)</td>', text)
    assert "44" in cells
    assert "12" in cells
    assert "When preemption begins" not in text


def test_a_need_that_nothing_meets_says_what_to_do(client: StrictClient) -> None:
    """Too much for 64 cards is an answer with a way out."""
    text = plain(client.get("/en/need?model=llama-3.1-405b&preset=full&peak_requests=9000000").text)
    assert "No server meets this need." in text
    assert "declare a shorter context" in text


def test_without_a_number_the_page_asks_for_one(client: StrictClient) -> None:
    """A model alone is no need yet."""
    text = plain(client.get("/en/need?model=llama-3.1-8b").text)
    assert "Enter the peak of requests in flight, or the number of users." in text


@pytest.mark.parametrize(
    ("name", "text"),
    [("users", "many"), ("seconds", "0"), ("answer_percent", "100"), ("model", "x")],
)
def test_a_wrong_entry_is_named_and_kept(client: StrictClient, name: str, text: str) -> None:
    """What cannot be used is a 422 that links to its field and keeps the entry."""
    pairs = {"model": "llama-3.1-8b", "peak_requests": "4", name: text}
    response = client.get(f"/en/need?{urlencode(pairs)}")
    assert response.status_code == 422
    assert f'href="#{name}"' in response.text
    assert f'value="{text}"' in response.text


@pytest.mark.slow
def test_german_and_english_find_the_same_servers(client: StrictClient) -> None:
    """The languages differ in words and separators alone."""
    query = "model=llama-3.3-70b&preset=chat&users=3000&spare=true"
    tables = [
        re.findall(r'<td class="num">([^<]+)</td>', client.get(f"{path}?{query}").text)
        for path in ("/en/need", "/de/bedarf")
    ]
    digits = [[re.sub(r"\D", "", cell) for cell in cells] for cells in tables]
    assert digits[0] == digits[1]


def test_the_comparison_explains_24_against_78(client: StrictClient) -> None:
    """The example shows both figures, the halved weights, and that only the layout was changed."""
    response = client.get("/en/compare")
    text = plain(response.text)
    assert "planned requests 24 78" in text
    assert "67.7\u202fGiB" in response.text
    differing = re.findall(r'<tr class="differs">\s*<th scope="row">([^<]+)', response.text)
    assert differing[0].strip() == "Layout"


def test_a_whole_address_may_be_pasted(client: StrictClient) -> None:
    """The address of a result is read like its query; the link of the page has them all."""
    cases = [
        "https://sizing.example/en/workbench?model=llama-3.1-8b&gpu=l4&max_model_len=8192#flags",
        "model=llama-3.1-8b&gpu=a10&max_model_len=8192",
    ]
    response = client.get(f"/de/vergleich?{urlencode([('case', case) for case in cases])}")
    assert response.status_code == 200
    link = re.search(r'href="(/de/vergleich\?case=[^"]+)"', response.text)
    assert link is not None
    assert client.get(html.unescape(link[1])).text.count("Auslegung 2") >= 1


def test_two_instances_on_one_card_are_added_up(client: StrictClient) -> None:
    """Two halves of a card fit beside each other; two of 92 % do not, and the page says so."""
    case = "model=llama-3.1-8b&gpu=h200&max_model_len=8192"
    fits = [("case", f"{case}&gpu_memory_utilization=0.45")] * 2
    text = plain(client.get(f"/en/compare?{urlencode(fits)}").text)
    assert "On one card they fit beside each other" in text
    too_much = plain(client.get(f"/en/compare?{urlencode([('case', case)] * 2)}").text)
    assert "On one card they do not fit" in too_much


@pytest.mark.parametrize(
    "case", ["x", "model=nothing&gpu=l4", "?", "%00", "model=llama-3.1-8b", "&" * 200]
)
def test_a_case_that_cannot_be_sized_is_named(client: StrictClient, case: str) -> None:
    """What is wrong stands there; the others are still compared."""
    good = "model=llama-3.1-8b&gpu=l4&max_model_len=8192"
    query = urlencode([("case", case), ("case", good)])
    response = client.get(f"/en/compare?{query}")
    assert response.status_code == 200
    assert "Number 1 cannot be sized" in plain(response.text)
    assert "Sizing 1" in plain(response.text)
