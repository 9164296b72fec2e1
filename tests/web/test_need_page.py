"""The need page and the comparison, as somebody would use them."""

import html
import re
from urllib.parse import urlencode

import pytest

from tests.readings.metrics import page
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


def test_no_cache_is_less_than_nothing(client: StrictClient) -> None:
    """Where the weights are larger than the card, the cache beside them is a dash."""
    cases = [f"model=llama-3.3-70b&gpu={gpu}&max_model_len=8192" for gpu in ("l4", "b200")]
    query = urlencode([("case", case) for case in cases])
    line = plain(client.get(f"/en/compare?{query}").text).partition("cache on a card ")[2]
    first, second, unit = line.split()[:3]
    assert (first, unit) == ("\u2013", "GiB")
    assert float(second) > 0


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


def together(client: StrictClient, path: str, *cases: str, server: str = "") -> str:
    """Return the section about one server, as HTML."""
    query = urlencode([*(("case", case) for case in cases), ("server", server)])
    page = client.get(f"{path}?{query}").text
    return page.partition('id="together"')[2].partition("</section>")[0]


SMALL = "model=llama-3.1-8b&gpu=rtx-pro-6000-server&max_model_len=8192"
MIDDLE = "model=qwen3-32b&gpu=rtx-pro-6000-server&max_model_len=8192"
ONE = "1x-rtx-pro-6000-server"


def test_several_models_are_placed_on_one_server(client: StrictClient) -> None:
    """Without a server named it is the smallest with room: two cards, one for each."""
    text = plain(together(client, "/en/compare", SMALL, MIDDLE))
    assert "They fit. Cards taken: 2 of 2; each sizing has its own." in text
    assert "1: Llama 3.1 8B Instruct 1 68 68 2: Qwen3 32B 2 11 11" in text


def test_what_does_not_fit_says_what_would(client: StrictClient) -> None:
    """Two on one card: smaller shares with their requests, a larger server; each link holds."""
    section = together(client, "/en/compare", SMALL, MIDDLE, server=ONE)
    text = plain(section)
    assert "They do not fit. Cards needed: 2; the server has 1." in text
    assert "Sizing 1 with --gpu-memory-utilization" in text
    assert "A server with 2 cards" in text
    links = [html.unescape(each) for each in re.findall(r'<a href="([^"]+)"', section)]
    assert len(links) == 2
    for link in links:
        assert "They fit." in plain(client.get(link).text)
    shared = plain(client.get(links[0]).text)
    assert "some share one" in shared
    assert "On card 1, sizings 1 and 2 fit beside each other" in shared


def test_a_fixed_cache_makes_the_order_matter(client: StrictClient) -> None:
    """Who asks for much and keeps little starts first, and the page says why."""
    fixed = f"{SMALL}&kv_cache_memory_bytes=8G"
    half = f"{SMALL}&gpu_memory_utilization=0.6"
    text = plain(together(client, "/en/compare", half, fixed, server=ONE))
    assert "Start them in this order: 2, 1." in text


def test_another_card_and_a_start_that_fails_are_named(client: StrictClient) -> None:
    """A sizing for another card is no part of the server; one click sizes all for its card."""
    other = "model=llama-3.1-8b&gpu=l40s&max_model_len=8192"
    section = together(client, "/de/vergleich", SMALL, other)
    assert "Auslegung 2 gilt für eine andere Karte" in plain(section)
    link = re.search(r'<a href="([^"]+)"', section)
    assert link is not None
    assert "Passt zusammen." in plain(client.get(html.unescape(link[1])).text)
    failing = "model=llama-3.3-70b&checkpoint=bf16&gpu=rtx-pro-6000-server&max_model_len=8192"
    text = plain(together(client, "/de/vergleich", SMALL, failing))
    assert "Auslegung 2 startet nicht, auch nicht allein." in text


def test_too_many_cards_for_any_server_are_said_so(client: StrictClient) -> None:
    """Twelve copies and a pair: no server here has that many cards."""
    text = plain(together(client, "/en/compare", f"{SMALL}&replicas=12", MIDDLE))
    assert "No server here has 13 of these cards" in text


@pytest.mark.parametrize("server", ["", "x", "1x-nothing", "999x-l40s", "%00", "x-" * 200])
def test_an_unknown_server_is_the_one_that_is_meant(client: StrictClient, server: str) -> None:
    """A text that is no server counts as none."""
    assert "Cards taken: 2 of 2" in plain(
        together(client, "/en/compare", SMALL, MIDDLE, server=server)
    )


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


def test_lengths_from_a_metrics_page_size_the_server(client: StrictClient) -> None:
    """The metrics page leads to the need page with its histogram, which says where it is from."""
    pasted = page().replace("our-org/our-8B", "meta-llama/Llama-3.1-8B-Instruct")
    read = client.post("/en/metrics", files={"metrics": (None, pasted)}).text
    link = re.search(r'href="([^"]*length_histogram[^"]*)"', read)
    assert link
    text = plain(client.get(html.unescape(link[1])).text)
    assert "Request mix measured from /metrics: 100 requests" in text
    assert "The longest prompts are taken to have the longest answers" in text
    assert "lognormal" not in text
    assert "12 are needed" in text


def test_counted_lengths_decide_the_curve(client: StrictClient) -> None:
    """Half as long requests of a pasted histogram let about twice as many run."""
    rarely = []
    for lengths in ("2000:0,2001:50", "1000:0,1001:50"):
        one_card = {"cards": "rtx-pro-6000-server", "bits": "16", "length_histogram": lengths}
        query = urlencode({"model": "llama-3.1-8b", "peak_requests": "9", **one_card})
        text = plain(client.get(f"/en/need?{query}").text)
        assert "Request mix from counted lengths: 50 requests" in text
        found = re.search(r"1 % of moments ([0-9,]+)", text)
        assert found
        rarely.append(int(found[1].replace(",", "")))
    assert rarely[1] == pytest.approx(2 * rarely[0], rel=0.05)


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ("1000", "“1000” is not a length with a number of requests"),
        ("5:3,4:1", "“4:1” is not above 5"),
        ("1000:0", "There are no requests in it"),
    ],
)
def test_a_wrong_histogram_is_told_where_it_is_wrong(
    client: StrictClient, lengths: str, told: str
) -> None:
    """422, with the pair and what to write instead; what was typed stays in the field."""
    query = urlencode({"model": "phi-4", "peak_requests": "4", "length_histogram": lengths})
    response = client.get(f"/en/need?{query}")
    assert response.status_code == 422
    assert told in plain(response.text)
    assert f">{lengths}</textarea>" in response.text


def test_a_measured_mix_without_lengths_asks_for_them(client: StrictClient) -> None:
    """A link that was cut off does not fall back to assumed lengths."""
    response = client.get("/en/need?model=phi-4&peak_requests=4&preset=measured")
    assert response.status_code == 422
    assert "There are no requests in it" in plain(response.text)


@pytest.mark.parametrize(
    ("bits", "precisions"), [("bits=16&bits=8", {"MXFP4"}), ("bits=16", {"BF16"})]
)
def test_boxes_that_nobody_touched_follow_the_model(
    client: StrictClient, bits: str, precisions: set[str]
) -> None:
    """A model published in four bit is offered so, unless other weights were ticked on purpose."""
    query = f"model=gpt-oss-120b&preset=full&peak_requests=8&usual_bits=16+8&{bits}"
    response = client.get(f"/en/need?{query}")
    shown = re.findall(r"<td>(BF16|FP8|MXFP4)</td>", response.text)
    assert set(shown) == precisions
    assert 'name="usual_bits" value="4"' in response.text


def test_an_offer_is_judged_by_the_lengths_of_the_need(client: StrictClient) -> None:
    """The page behind an offer knows the mean length, and says that the peak is covered there."""
    text = client.get("/en/need?model=llama-3.3-70b&preset=rag&users=200&bits=8&spare=true").text
    links = re.findall(r'<th scope="row"><a href="([^"]+rtx-pro-6000[^"]+)">', text)
    verdict = plain(client.get(html.unescape(links[0])).text)
    assert "At your mean length of 5,000 tokens, 38 requests fit. That covers the peak" in verdict


def test_a_spare_copy_is_named_where_requests_are_counted(client: StrictClient) -> None:
    """The offer counts one copy less than the curve, and both say so."""
    query = "model=llama-3.3-70b&preset=rag&users=200&bits=8"
    spare = plain(client.get(f"/en/need?{query}&spare=true").text)
    without = plain(client.get(f"/en/need?{query}").text)
    assert re.search(r"\d+ requests in flight with one copy down, where 13 are needed", spare)
    assert "All 2 copies are counted here, the spare one too." in spare
    assert "one copy down" not in without
    assert "copies are counted here" not in without


def test_requests_longer_than_the_model_takes_are_named(client: StrictClient) -> None:
    """Where the context is what no card can help with, the page says so and not "more cards"."""
    asked = "/en/need?model=qwen3-14b&preset=full&peak_requests=4&max_model_len="
    text = plain(client.get(f"{asked}40964").text)
    assert "40,964 tokens are more than the model's 40,960. Declare a shorter context." in text
    assert "Not with up to 64 cards" not in text
    assert "No server meets this need" not in plain(client.get(f"{asked}40960").text)
