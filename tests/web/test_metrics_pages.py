"""The page that reads /metrics: verdict, findings, both pages, in both languages."""

import re
from typing import Any

import pytest

from app.readings.metrics_findings import MetricsFinding
from app.readings.metrics_samples import MetricsProblem
from app.web.locale import LANGUAGES, Language
from app.web.render import Renderer
from tests.readings.metrics import page
from tests.strict_client import StrictClient

PATHS = {"en": "/en/metrics", "de": "/de/metriken"}


def read(client: StrictClient, language: str = "en", **fields: str) -> str:
    """The page for pasted metrics, its text on one line."""
    answer = client.post(PATHS[language], data=fields)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"usage": 0.97, "waiting": 9}, "The cache holds the server back: 97% of it is in use."),
        ({"usage": 0.3, "waiting": 9}, "The batch limit holds the server back"),
        ({"usage": 0.3}, "There is room to spare: 30% of the cache is in use"),
        ({"usage": 0.0, "running": 0}, "The server is idle."),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(
    client: StrictClient, fields: dict[str, float], words: str
) -> None:
    """Each verdict is the headline of its page."""
    assert words in read(client, metrics=page(**fields))  # type: ignore[arg-type]


def test_the_real_mix_is_counted(client: StrictClient) -> None:
    """The page says how many requests of the real lengths the cache holds."""
    text = read(client, metrics=page())
    assert "requests of your real mean length of 1,360 tokens" in text
    assert "Requests of full length 6.56 of 32,768 tokens each" in text


def test_old_preemptions_are_no_alarm(client: StrictClient) -> None:
    """Preemptions of a server with room now were earlier; those of a full one call for change."""
    room = read(client, metrics=page(usage=0.3, preemptions=17))
    assert "17 requests lost their place in a full cache since the start" in room
    assert "add cards" not in room
    full = read(client, metrics=page(usage=0.97, preemptions=17))
    assert "17 requests lost their place in the full cache" in full
    assert "add cards" in full


def test_a_page_without_lengths_says_why_nothing_is_sized(client: StrictClient) -> None:
    """Without histograms of lengths the page says that they are missing; else it leads on."""
    bare = "\n".join(
        line for line in page().splitlines() if not line.startswith("vllm:request_prompt_tokens")
    )
    assert "no lengths of finished requests" in read(client, metrics=bare)
    whole = read(client, metrics=page())
    assert "no lengths of finished requests" not in whole
    assert "Size with this mix" in whole


def test_two_pages_give_rates(client: StrictClient) -> None:
    """A second page and the minutes between give what happened and how fast."""
    later = page(preemptions=40, prompts={900: 180, 4_000: 20})
    text = read(client, "de", metrics=page(), metrics_later=later, minutes="5", max_num_seqs="64")
    assert "Zwischen den beiden Seiten" in text
    assert "20,0 pro Minute" in text
    assert "von 64" in text


def test_what_is_no_metrics_page_is_said(client: StrictClient) -> None:
    """A text without metrics is an answer; nothing at all is an error; too much is refused."""
    assert "There are no metrics of vLLM" in read(client, metrics="hello <b>")
    assert client.post(PATHS["en"], data={"metrics": ""}).status_code == 422
    assert client.post(PATHS["en"], data={"metrics": "x" * 1_100_000}).status_code == 413


@pytest.mark.parametrize("places", ["", "x", "-3", "1e9", "nan", "64"])
def test_odd_numbers_do_no_harm(client: StrictClient, places: str) -> None:
    """Limits and minutes that are no numbers are left out."""
    read(client, metrics=page(), max_num_seqs=places, minutes=places)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_words(client: StrictClient, language: Language) -> None:
    """Every finding and every problem has a sentence."""
    renderer: Renderer = client.served.state.renderer
    template = renderer.environments[language].get_template("readings/metrics_words.html")
    module: Any = template.module
    numbers = dict.fromkeys(
        ("num_preemptions", "per_request", "waiting", "running", "max_model_len",
         "p95_request_tokens", "max_num_seqs", "requests_of_mean_length", "hit_rate",
         "num_gpu_blocks_override"), 1,
    )  # fmt: skip
    codes = set(re.findall(r"`([a-z_0-9]+)`", MetricsFinding.__doc__ or ""))
    assert len(codes) == 11
    for code in codes:
        found = MetricsFinding(code, "info", numbers)
        assert str(module.metrics_finding_words(found)).strip(), code
    problems = set(re.findall(r"`([a-z_]+)`", MetricsProblem.__doc__ or "")) - {"line"}
    assert len(problems) >= 7
    for code in problems:
        assert str(module.metrics_problem_words(MetricsProblem(3, code))).strip(), code
