"""Pages over HTTP: what each shows, links to, and answers when something is wrong."""

from __future__ import annotations

import re
import shlex
from urllib.parse import parse_qsl, urlencode, urlsplit
from xml.etree.ElementTree import Element

import pytest

from tests.strict_client import StrictClient, parse_strictly

LLAMA = {
    "model": "llama-3.3-70b",
    "checkpoint": "nvidia/Llama-3.3-70B-Instruct-FP8",
    "gpu": "rtx-pro-6000-server",
    "max_model_len": "8192",
}
HX = {"HX-Request": "true", "HX-Request-Type": "partial"}
PLAIN = {
    "en": ["/en/", "/en/help", "/en/how-it-computes", "/en/privacy", "/en/sizing/model"],
    "de": ["/de/", "/de/hilfe", "/de/so-rechnet-es", "/de/datenschutz", "/de/auslegung/modell"],
}
STEPS = {
    "en": ["precision", "gpu", "layout", "context", "result", "check"],
    "de": ["praezision", "karten", "aufteilung", "kontext", "ergebnis", "pruefen"],
}


def page_of(client: StrictClient, path: str, answers: dict[str, str] | None = None) -> Element:
    """Return the tree of a page that must be there."""
    answer = client.get(path, params=answers)
    assert answer.status_code == 200, path
    return parse_strictly(answer.text)


def text_of(tree: Element) -> str:
    """Return the text of an element on one line."""
    return " ".join("".join(tree.itertext()).split())


def by_id(tree: Element, name: str) -> Element:
    """Return the element with an id."""
    return next(each for each in tree.iter() if each.get("id") == name)


def chosen_in(tree: Element, name: str) -> list[str | None]:
    """Return the values that are chosen in a list."""
    options = by_id(tree, name).iter("option")
    return [each.get("value") for each in options if each.get("selected") is not None]


def result_html(html: str) -> str:
    """Return the result block of a page, byte for byte."""
    start = html.index('<div class="result" id="result">')
    depth = 0
    for tag in re.finditer(r"<(/?)div\b", html[start:]):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return html[start : start + tag.end()]
    raise AssertionError("the block does not end")


@pytest.mark.parametrize("language", ["de", "en"])
def test_titles_are_unique_and_headings_say_the_same(client: StrictClient, language: str) -> None:
    """Each page has a title of its own that ends with the product's name."""
    root = {"en": "/en/sizing", "de": "/de/auslegung"}[language]
    pages: list[tuple[str, dict[str, str]]] = [(path, {}) for path in PLAIN[language]]
    pages += [(f"{root}/{step}", LLAMA) for step in STEPS[language]]
    titles = []
    for path, answers in pages:
        title = page_of(client, path, answers).findtext("head/title") or ""
        assert title.endswith({"en": " · vLLM sizing", "de": " · vLLM-Auslegung"}[language])
        titles.append(title)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("language", ["de", "en"])
def test_question_pages_repeat_their_heading_in_the_title(
    client: StrictClient, language: str
) -> None:
    """The one h1 of a question is its label or legend, and begins the title."""
    root = {"en": "/en/sizing", "de": "/de/auslegung"}[language]
    for step in STEPS[language][:4]:
        tree = page_of(client, f"{root}/{step}", LLAMA)
        heading = text_of(next(tree.iter("h1")))
        assert (tree.findtext("head/title") or "").startswith(heading)


def test_result_is_the_same_bytes_everywhere(client: StrictClient) -> None:
    """Guided flow, workbench and htmx show the same result, byte for byte."""
    answers = {**LLAMA, "server": "2x-rtx-pro-6000-server", "peak_requests": "9"}
    guided = client.get("/en/sizing/result", params=answers).text
    bench = client.get("/en/workbench", params=answers).text
    block = client.get("/en/workbench", params=answers, headers=HX).text
    assert result_html(guided) == result_html(bench) == result_html(block)
    assert "<html" not in block


def test_sections_stand_in_their_order(client: StrictClient) -> None:
    """Verdict first, then figures, memory, layouts and so on to the quote."""
    tree = page_of(client, "/en/workbench", LLAMA)
    sections = [each.get("id") for each in by_id(tree, "result").iter("section")]
    assert sections == [
        "verdict", "figures", "memory", "layouts", "tokens", "flags", "users", "steps",
        "assumptions", "command-line", "link", "quote",
    ]  # fmt: skip
    index = {
        each.get("href") for each in tree.iter("a") if (each.get("href") or "").startswith("#")
    }
    assert {f"#{name}" for name in sections[1:]} <= index


def test_first_sentence_says_how_many_and_by_how_much(client: StrictClient) -> None:
    """The verdict names the requests and the margin in GiB, whether it fits or not."""
    fits = text_of(by_id(page_of(client, "/en/workbench", LLAMA), "verdict-sentence"))
    assert re.match(r"12 requests of 8,192 tokens fit .* GiB", fits)
    answers = {**LLAMA, "max_model_len": "131072"}
    short = text_of(by_id(page_of(client, "/en/workbench", answers), "verdict-sentence"))
    assert re.search(r"0\.77\. 4\.6 GiB short", short)
    peak = {**LLAMA, "peak_requests": "20"}
    tight = text_of(by_id(page_of(client, "/en/workbench", peak), "verdict-sentence"))
    assert re.search(r"GiB short of the 20 requests", tight)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"max_model_len": "auto", "available_kv_cache_memory_bytes": "1"},
            "Not one token fits in the memory that is there for the cache.",
        ),
        (
            {"kv_cache_memory_bytes": "500G"},
            r"The cache is fixed at 500.0.GiB a card; beside the weights there is room for 2\d",
        ),
    ],
)
def test_refusals_with_few_numbers_are_answers(
    client: StrictClient, changes: dict[str, str], words: str
) -> None:
    """A refusal that names no needed memory, or a cache that was asked for, is said in words."""
    tree = page_of(client, "/en/workbench", {**LLAMA, **changes})
    assert re.search(words, text_of(by_id(tree, "verdict")))


def test_idle_cards_lead_to_the_layout_of_all(client: StrictClient) -> None:
    """With one card of a pair in use, the verdict links to what both give: 78 requests."""
    answers = {**LLAMA, "server": "2x-rtx-pro-6000-server"}
    verdict = by_id(page_of(client, "/en/workbench", answers), "verdict")
    assert "One of the server's 2 cards is used." in text_of(verdict)
    link = next(each for each in verdict.iter("a") if "TP 2" in text_of(each))
    both = by_id(page_of(client, "/en/workbench" + (link.get("href") or "")), "verdict")
    assert text_of(both).startswith("Fits")
    assert "78 requests of 8,192" in text_of(both)


def test_empty_context_is_said_before_it_counts(client: StrictClient) -> None:
    """The last question tells which length stands in for an empty field."""
    tree = page_of(client, "/en/sizing/context", LLAMA)
    assert "Left empty, vLLM takes the 131,072" in text_of(by_id(tree, "max_model_len-hint"))


def test_users_never_stand_beside_the_figure_of_the_log(client: StrictClient) -> None:
    """Verdict, key figures and log speak of requests, never of users."""
    tree = page_of(client, "/en/workbench", LLAMA)
    for name in ("verdict", "figures", "layouts", "flags"):
        assert "user" not in text_of(by_id(tree, name)).lower()


@pytest.mark.slow
def test_layouts_are_marked_and_linked(client: StrictClient) -> None:
    """One layout is the current one, and each row leads to a result with that layout."""
    answers = {**LLAMA, "server": "4x-rtx-pro-6000-server", "tensor_parallel_size": "2"}
    answers["replicas"] = "2"
    tree = page_of(client, "/en/workbench", answers)
    rows = list(by_id(tree, "layouts").iter("tr"))[1:]
    assert [row.get("aria-current") for row in rows].count("true") == 1
    for row in rows:
        link = next(row.iter("a"))
        there = page_of(client, f"/en/workbench{link.get('href')}")
        chosen = next(
            each for each in by_id(there, "layouts").iter("tr") if each.get("aria-current")
        )
        assert text_of(chosen) == text_of(row)


@pytest.mark.slow
def test_every_way_out_fits(client: StrictClient) -> None:
    """Each way out leads to a result with at least one request."""
    answers = {**LLAMA, "max_model_len": "131072"}
    tree = page_of(client, "/en/workbench", answers)
    ways = [
        link.get("href")
        for each in tree.iter("ul")
        if each.get("class") == "ways"
        for link in each.iter("a")
    ]
    assert len(ways) >= 3
    for href in ways:
        there = page_of(client, f"/en/workbench{href}")
        assert re.match(r"[1-9]", text_of(by_id(there, "verdict-sentence")))


@pytest.mark.slow
def test_every_flag_value_is_a_link_that_gives_its_figure(client: StrictClient) -> None:
    """Following a value of the flag table shows the tokens that the table promised."""
    tree = page_of(client, "/en/workbench", LLAMA)
    rows = [row for row in by_id(tree, "flags").iter("tr") if row.find(".//a") is not None]
    assert len(rows) >= 10
    for row in rows[::4]:
        link = next(row.iter("a"))
        cells = [text_of(cell) for cell in row.findall("td")]
        there = page_of(client, f"/en/workbench{link.get('href')}")
        if "does not start" not in cells[-1]:
            assert f"size: {cells[-2]} tokens" in text_of(by_id(there, "figures"))


def test_command_is_what_a_shell_reads(client: StrictClient) -> None:
    """The command holds exactly the chosen values, in vLLM's spelling."""
    answers = {
        **LLAMA,
        "tensor_parallel_size": "2",
        "gpu_memory_utilization": "0.92",
        "enforce_eager": "true",
        "enable_prefix_caching": "false",
        "speculative_config": '{"method":"ngram","num_speculative_tokens":3}',
    }
    tree = page_of(client, "/en/workbench", answers)
    words = shlex.split(text_of(by_id(tree, "command")).replace("\\", ""))
    assert words == [
        "vllm", "serve", "nvidia/Llama-3.3-70B-Instruct-FP8",
        "--tensor-parallel-size", "2", "--max-model-len", "8192",
        "--gpu-memory-utilization", "0.92", "--enforce-eager", "--no-enable-prefix-caching",
        "--speculative-config", '{"method":"ngram","num_speculative_tokens":3}',
    ]  # fmt: skip


def test_permalink_reproduces_the_result_in_both_languages(client: StrictClient) -> None:
    """The link on the page shows the same figures, in either language."""
    answers = {**LLAMA, "tensor_parallel_size": "2"}
    tree = page_of(client, "/en/sizing/result", answers)
    link = urlsplit(by_id(tree, "permalink").get("value") or "")
    assert link.path == "/en/workbench"
    query = dict(parse_qsl(link.query))
    assert {"data", "v"} <= query.keys()
    english = text_of(by_id(page_of(client, "/en/workbench", query), "verdict-sentence"))
    german = text_of(by_id(page_of(client, "/de/rechner", query), "verdict-sentence"))
    assert english.startswith("78 requests")
    assert german.startswith("78 Anfragen")


def test_assumptions_release_and_data_are_named(client: StrictClient) -> None:
    """The result says which release and which data it rests on."""
    text = text_of(by_id(page_of(client, "/en/workbench", LLAMA), "assumptions"))
    assert "vLLM 0.32.0; data of" in text
    assert "Speed is not calculated" in text


def test_skipping_ahead_leads_to_the_first_open_question(client: StrictClient) -> None:
    """A later address with answers missing redirects to the first open question; the rest stays."""
    answer = client.get("/en/sizing/result", params={"max_model_len": "4096"})
    assert answer.status_code == 303
    there = urlsplit(answer.headers["location"])
    assert there.path == "/en/sizing/model"
    assert dict(parse_qsl(there.query)) == {"max_model_len": "4096"}
    answer = client.get("/de/auslegung/kontext", params={"model": "llama-3.3-70b"})
    assert urlsplit(answer.headers["location"]).path == "/de/auslegung/karten"


def test_answers_lead_on_by_redirect(client: StrictClient) -> None:
    """A good answer redirects to the next question; the button's own name stays behind."""
    given = {**LLAMA, "card": "server:4x-rtx-pro-6000-server", "go": "1"}
    answer = client.get("/en/sizing/gpu", params=given)
    there = urlsplit(answer.headers["location"])
    assert there.path == "/en/sizing/layout"
    query = dict(parse_qsl(there.query))
    assert query["server"] == "4x-rtx-pro-6000-server"
    assert not {"go", "card"} & query.keys()


def test_unanswered_question_says_so(client: StrictClient) -> None:
    """Going on without an answer gives 422 and the question again."""
    given = {"model": "llama-3.3-70b", "max_model_len": "x", "gpu": "h200-nvl", "go": "1"}
    answer = client.get("/en/sizing/context", params=given)
    assert answer.status_code == 422
    assert answer.headers["hx-push-url"] == "false"
    assert "Error:" in (parse_strictly(answer.text).findtext("head/title") or "")


def test_summary_repeats_the_words_beside_the_field(client: StrictClient) -> None:
    """What the summary says is what stands beside the field, and what was entered is kept."""
    answers = {**LLAMA, "max_model_len": "1.5K", "gpu_memory_utilization": "2"}
    answer = client.get("/de/rechner", params=answers)
    assert answer.status_code == 422
    tree = parse_strictly(answer.text)
    for name in ("max_model_len", "gpu_memory_utilization"):
        link = next(a for a in by_id(tree, "errors").iter("a") if a.get("href") == f"#{name}")
        assert text_of(link) == text_of(by_id(tree, f"{name}-error"))
        assert by_id(tree, name).get("value") == answers[name]


def test_only_possible_values_are_offered(client: StrictClient) -> None:
    """A tensor-parallel size that the heads do not allow is disabled, with the reason beside it."""
    answers = {"model": "phi-4", "gpu": "h200-nvl"}
    tree = page_of(client, "/en/workbench", answers)
    sizes = {
        each.get("value"): each.get("disabled")
        for each in tree.iter("input")
        if each.get("name") == "tensor_parallel_size"
    }
    assert sizes["1"] is None
    assert sizes["8"] is not None
    assert re.search(r"8: .*do not divide evenly|8: .*cannot be divided", text_of(tree))


def test_model_decides_over_a_checkpoint_of_another(client: StrictClient) -> None:
    """Another model with the old checkpoint still chosen keeps the precision."""
    answers = {**LLAMA, "model": "qwen3-8b"}
    tree = page_of(client, "/en/workbench", answers)
    assert chosen_in(tree, "checkpoint") == ["Qwen/Qwen3-8B-FP8"]


def test_card_decides_over_a_server_of_another(client: StrictClient) -> None:
    """Another card with the old server still chosen gives the server of the same size."""
    answers = {**LLAMA, "server": "4x-rtx-pro-6000-server", "gpu": "h200-nvl"}
    tree = page_of(client, "/en/workbench", answers)
    assert chosen_in(tree, "server") == ["4x-h200-nvl"]


@pytest.mark.parametrize(
    ("typed", "slug"),
    [
        ("Llama 3.3 70B Instruct", "llama-3.3-70b"),
        ("llama 3.3 70", "llama-3.3-70b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b"),
    ],
)
def test_models_are_found_by_what_people_type(client: StrictClient, typed: str, slug: str) -> None:
    """A name, a part of it that fits one model, and a Hugging Face id all mean the model."""
    answer = client.get("/en/workbench", params={"model": typed, "gpu": "h200-nvl"}, headers=HX)
    assert answer.status_code == 200
    assert f"model={slug}" in answer.headers["hx-push-url"].replace(
        "meta-llama/Llama-3.3-70B-Instruct", slug
    )


def test_a_name_that_fits_several_models_asks_which(client: StrictClient) -> None:
    """A part of a name that fits several models is answered with their names."""
    answer = client.get("/en/workbench", params={"model": "qwen3", "gpu": "h200-nvl"})
    assert answer.status_code == 422
    assert "Qwen3" in text_of(by_id(parse_strictly(answer.text), "errors"))


@pytest.mark.slow
def test_history_follows_choices_but_not_typing(client: StrictClient) -> None:
    """A choice is a new entry of the browser's history, typing replaces the last one."""
    chosen = client.get("/en/workbench", params={**LLAMA, "replicas": "1"}, headers=HX)
    assert urlsplit(chosen.headers["hx-push-url"]).path == "/en/workbench"
    assert "replicas" not in chosen.headers["hx-push-url"]
    typed = client.get("/en/workbench", params=LLAMA, headers={**HX, "Sizing-Typed": "true"})
    assert "hx-push-url" not in typed.headers
    assert typed.headers["hx-replace-url"] == chosen.headers["hx-push-url"]
    assert "hx-push-url" not in client.get("/en/workbench", params=LLAMA).headers


def test_embedded_pages_keep_theme_and_accent(client: StrictClient) -> None:
    """Every link and form of an embedded page stays embedded and keeps the host's colours."""
    query = urlencode({**LLAMA, "theme": "dark", "accent": "8fd0ff"})
    tree = parse_strictly(client.get(f"/embed/de/rechner?{query}").text)
    sheets = [each.get("href") for each in tree.iter("link") if each.get("rel") == "stylesheet"]
    assert "/theme.css?theme=dark&accent=8fd0ff" in sheets
    hrefs = [each.get("href") or "" for each in tree.iter("a")]
    inner = [href for href in hrefs if href.startswith(("/", "?"))]
    assert inner
    assert all("theme=dark" in href and "accent=8fd0ff" in href for href in inner)
    assert all(href.startswith(("/embed/", "?")) for href in inner)
    hidden = {each.get("name"): each.get("value") for each in tree.iter("input")}
    assert hidden["theme"] == "dark"


def test_no_page_embeds_itself_elsewhere(client: StrictClient) -> None:
    """Only /embed pages name who may frame them; header and footer are not on them."""
    plain = client.get("/de/")
    assert "frame-ancestors 'none'" in plain.headers["content-security-policy"]
    framed = client.get("/embed/de/")
    assert "https://www.example.com" in framed.headers["content-security-policy"]
    assert "page-header" not in framed.text


def test_flags_are_not_translated(client: StrictClient) -> None:
    """Names of flags, commands and log lines carry translate="no"."""
    tree = page_of(client, "/de/rechner", LLAMA)
    for code in by_id(tree, "flags").iter("code"):
        assert code.get("translate") == "no"
    assert by_id(tree, "command").get("translate") == "no"


def test_memory_of_other_processes_is_asked_for_and_explained(client: StrictClient) -> None:
    """The card question asks for it, the check page names it, and the result says what it does."""
    query = urlencode({"model": "llama-3.1-8b", "gpu": "l40s", "other_processes_gib": "20"})
    asked = page_of(client, "/en/sizing/gpu", {"model": "llama-3.1-8b"})
    assert by_id(asked, "other_processes_gib").get("value") == ""
    assert (
        "20.0\u202fGiB of each held by other processes"
        in client.get(f"/en/sizing/check?{query}").text
    )
    result = client.get(f"/en/workbench?{query}&max_model_len=8192").text
    assert "Other processes hold 20.00 GiB of the card." in result
    assert "no other process on the card" in result
    assert 'class="term--other_processes"' in result
    assert "would be needed on a card of" in result
    assert "The cards serve nothing else." not in result
    alone = client.get("/en/workbench?model=llama-3.1-8b&gpu=l40s").text
    assert "The cards serve nothing else." in alone


def test_a_slice_is_offered_apart_and_never_as_a_group(client: StrictClient) -> None:
    """The question and the workbench list slices by themselves; the matrix leaves them out."""
    slug = "h200-mig-1g.35gb"
    asked = client.get(f"/de/auslegung/karten?model=llama-3.1-8b&gpu={slug}").text
    assert "Eine MIG-Scheibe einer Karte" in asked
    assert re.search(rf'value="gpu:{re.escape(slug)}" checked', asked)
    query = urlencode({"model": "llama-3.1-8b", "gpu": slug, "max_model_len": "8192"})
    result = client.get(f"/en/workbench?{query}").text
    assert '<optgroup label="MIG slices">' in result
    assert "up to 4 of them fit on a card" in result
    group = client.get(f"/en/workbench?{query}&tensor_parallel_size=2").text
    assert "MIG slices do not work as a group" in group
    assert "MIG" not in client.get("/en/matrix?model=llama-3.1-8b").text


def test_the_verdict_says_why_it_is_below_the_planned_figure(client: StrictClient) -> None:
    """DeepSeek-V3.2 with spread experts: 24 requests are 8 x 3, not the 40 that are planned."""
    answers = {
        "model": "deepseek-v3.2", "gpu": "h200", "max_model_len": "32768",
        "data_parallel_size": "8", "enable_expert_parallel": "true",
    }  # fmt: skip
    verdict = text_of(by_id(page_of(client, "/en/workbench", answers), "verdict"))
    assert "24 requests of 32,768 tokens" in verdict
    assert "in whole requests of each instance: 8 \u00d7 3." in verdict
    llama = text_of(by_id(page_of(client, "/en/workbench", LLAMA), "verdict"))
    assert "lower one counts" not in llama


@pytest.mark.parametrize(
    ("checkpoint", "cache", "requests"),
    [
        ("nvidia/Llama-3.3-70B-Instruct-FP8", "cache in fp8_e4m3", "12 requests"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "cache in bfloat16", "6 requests"),
    ],
)
def test_the_verdict_names_the_cache_that_auto_means(
    client: StrictClient, checkpoint: str, cache: str, requests: str
) -> None:
    """Two FP8 checkpoints of one size differ in their cache, and so by half of the requests."""
    tree = page_of(client, "/en/workbench", {**LLAMA, "checkpoint": checkpoint})
    verdict = text_of(by_id(tree, "verdict"))
    assert cache in verdict
    assert requests in verdict


def test_decode_context_parallelism_is_a_field_of_its_own(client: StrictClient) -> None:
    """It is entered in the expert settings, once, and shows what the address says."""
    answers = {
        "model": "deepseek-v3.2", "gpu": "h200", "tensor_parallel_size": "8",
        "decode_context_parallel_size": "8", "kv_cache_dtype": "fp8",
    }  # fmt: skip
    tree = page_of(client, "/en/workbench", answers)
    fields = [
        each for each in tree.iter("input") if each.get("name") == "decode_context_parallel_size"
    ]
    assert [(each.get("type"), each.get("value")) for each in fields] == [("text", "8")]


@pytest.mark.parametrize("given", ["available_kv_cache_memory_bytes", "kv_cache_memory_bytes"])
def test_a_given_cache_without_a_block_is_not_blamed_on_the_weights(
    client: StrictClient, given: str
) -> None:
    """One byte given by hand is too little by itself, however large or small the weights are."""
    text = text_of(page_of(client, "/en/workbench", {**LLAMA, given: "1"}))
    assert "holds no block beside the one that vLLM keeps empty" in text
    assert "Weights and activations take all" not in text
