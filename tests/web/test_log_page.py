"""The page that reads a start log: every line has its sentence, nothing pasted escapes."""

import re
from urllib.parse import urlsplit

import pytest

from app.readings import arithmetic_causes, memory_causes
from app.readings.failures import FAILURE_CODES
from app.readings.findings import Finding
from app.readings.log_lines import LINE_KINDS
from app.readings.start_log import read_start_log
from app.web.locale import LANGUAGES, Language
from app.web.view_models.annotated_log import MAX_LENGTH, annotate
from tests.readings import hard_logs
from tests.readings.failed_starts import failed_start
from tests.readings.failure_rows import FAILURES
from tests.readings.line_row import Row
from tests.readings.line_table import LINE_TABLE
from tests.strict_client import StrictClient
from tests.web.log_pages import KNOWN, LLAMA, paste, rendered, words

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_of_every_release_has_a_sentence(
    client: StrictClient, language: Language
) -> None:
    """Every wording that is recognised is explained in a sentence of its own language."""
    explained = set()
    for row in LINE_TABLE:
        reading = read_start_log(row.printed())
        for line in reading.lines:
            text = rendered(client, language, "readings/line_words.html", "line_words", line)
            assert len(text) > 10, (row.kind, line)
            assert text[-1] in ".?”", text
            explained.add(line.kind)
    kinds = {kind.kind for kind in LINE_KINDS}
    assert kinds - explained == {"killed"}  # counts only where nothing else stands in the line
    (line,) = read_start_log("Killed\n").lines
    assert rendered(client, language, "readings/line_words.html", "line_words", line)


def test_german_and_english_differ(client: StrictClient) -> None:
    """No sentence of the log page is left in English on the German page."""
    for row in LINE_TABLE:
        for line in read_start_log(row.printed()).lines:
            english, german = (
                rendered(client, language, "readings/line_words.html", "line_words", line)
                for language in ("en", "de")
            )
            assert english != german


def test_sentences_hold_the_figures_of_the_line(client: StrictClient) -> None:
    """The person's own numbers stand in the sentences, written as the language writes them."""
    text = (
        "GPU KV cache size: 321,600 tokens, "
        "Maximum concurrency for 32,768 tokens per request: 9.81x"
    )
    assert "holds 321,600 tokens: 9.81 requests of 32,768 tokens" in words(paste(client, text))
    assert "fasst 321.600 Token: 9,81 Anfragen mit 32.768 Token" in words(paste(client, text, "de"))


def codes_of(documentation: str | None) -> set[str]:
    """The codes that a docstring lists."""
    return set(re.findall(r"`([a-z_0-9]+)`", documentation or ""))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_words(client: StrictClient, language: Language) -> None:
    """Every finding, failure and cause has a sentence, also one whose numbers are large."""
    numbers = dict.fromkeys(
        ("max_model_len", "max_concurrency", "max_num_seqs", "num_preemptions", "requests",
         "usage_percent", "waiting", "gpu_memory_utilization", "default", "estimate_gib",
         "actual_gib", "wasted_gib", "unused_bytes", "num_kv_heads", "tensor_parallel_size",
         "num_gpu_blocks", "padding_layers", "waste_percent", "percent", "used_gib", "total_gib",
         "cpu_offload_gb", "decode_context_parallel_size", "needed_gib", "available_gib",
         "requested_memory_gib", "free_memory_gib", "total_memory_gib", "engine_budget_gib",
         "mamba_blocks", "derived_max_model_len", "num_attention_heads", "dummy_requests"), 7,
    ) | {"kv_cache_dtype": "fp8", "vllm_version": "0.1", "checkpoint": "x/y", "term": "weights",
         "detail": "z"}  # fmt: skip
    findings = codes_of(Finding.__doc__)
    assert len(findings) > 15
    for code in findings:
        found = Finding(code, "info", numbers)
        assert rendered(client, language, "readings/finding_words.html", "finding_words", found)
    unknown = rendered(
        client, language, "readings/cause_words.html", "cause_words",
        memory_causes.Cause("unexplained"),
    )  # fmt: skip
    causes = codes_of(memory_causes.Cause.__doc__) | codes_of(
        arithmetic_causes.arithmetic_cause.__doc__
    )
    for code in causes - {"unexplained", "arithmetic_causes", "request"}:
        cause = memory_causes.Cause(code, numbers)
        text = rendered(client, language, "readings/cause_words.html", "cause_words", cause)
        assert text != unknown, code
    for code in FAILURE_CODES:
        words_of = ("readings/failure_words.html", "failure_words", code, numbers)
        assert rendered(client, language, *words_of), code


def test_a_known_server_is_summed_up(client: StrictClient) -> None:
    """A known start shows its figures, what helps most, the comparison, and the way on."""
    html = paste(client, KNOWN)
    text = words(html)
    for part in ("What helps most", "Memory per card, as measured", "Predicted and printed",
                 "Findings", "as predicted", "--kv-cache-dtype fp8"):  # fmt: skip
        assert part in text
    link = re.search(r'href="([^"]*workbench[^"]*measured_weights_gib[^"]*)"', html)
    assert link is not None
    workbench = client.get(link[1].replace("&amp;", "&"))
    assert workbench.status_code == 200
    assert "read from the start log of this server" in words(workbench.text)


@pytest.mark.parametrize("row", FAILURES, ids=[f"{n}-{row.kind}" for n, row in enumerate(FAILURES)])
def test_failed_starts_are_explained(client: StrictClient, row: Row) -> None:
    """Each failure is the headline of its page, with the line where it stands."""
    if not row.releases:
        pytest.skip("no release prints this wording whole")
    text = words(paste(client, failed_start(row.releases[-1], row, "profiling", LLAMA)))
    assert "Failed" in text
    assert re.search(r"It failed .* \(line [0-9]+\)", text)


def test_hostile_text_is_shown_as_text(client: StrictClient) -> None:
    """Markup comes back escaped; what turns or hides text is made visible."""
    evil = (
        "<script>alert(1)</script>\u202e\x07\x1b[31mred\x1b[0m\n"
        "non-default args: {'model': '<img src=x onerror=alert(1)>'}\n"
        "Available KV cache memory: 1.5 GiB</textarea><script>\n"
    )
    html = paste(client, evil)
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    lines = html[html.index('class="log-lines"') :].partition("</ol>")[0]
    assert "\u202e" not in lines
    assert "\x1b" not in lines
    assert "\u2407" in lines


def test_long_logs_are_cut_and_long_lines_too() -> None:
    """Of 100,000 lines those around recognised ones are shown, with the numbers of the paste."""
    lines = ["noise"] * 100_000
    lines[70_000] = "Available KV cache memory: 1.5 GiB" + "x" * 1_000_000
    text = "\n".join(lines)
    log = annotate(text, read_start_log(text).lines)
    assert [row.number for row in log.rows] == [70_000, 70_001, 70_002]
    assert log.rows[0].skipped == 69_999
    assert log.skipped == 100_000 - 70_002
    assert len(log.rows[1].text) == MAX_LENGTH
    assert log.rows[1].cut == len(lines[70_000]) - MAX_LENGTH


def test_five_megabytes_are_answered(client: StrictClient) -> None:
    """A log of almost 5 MB comes back as a page of a size a browser can show."""
    statistics = (
        "INFO Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 12.5%\n"
    )
    html = paste(client, KNOWN + statistics * (4_900_000 // len(statistics)))
    assert len(html) < 400_000
    assert "too long to be written back" in html


def test_a_dropped_file_is_read(client: StrictClient) -> None:
    """A file counts in place of the text field, in UTF-8 and as PowerShell writes it."""
    for data in (KNOWN.encode(), KNOWN.encode("utf-16")):
        answer = client.post("/en/log", data={"log": ""}, files={"log_file": ("a.log", data)})
        assert "Llama 3.1 8B" in words(answer.text)


def test_nothing_pasted_is_an_error(client: StrictClient) -> None:
    """An empty form comes back with 422 and a summary; a text without vLLM is an answer."""
    answer = client.post("/de/log", data={"log": "  \n"})
    assert answer.status_code == 422
    assert "Es wurde nichts eingefügt" in words(answer.text)
    assert "No line of vLLM was recognised" in words(paste(client, "hello"))


def test_what_is_no_form_is_refused(client: StrictClient) -> None:
    """A body that is no form, or a broken one, is refused with a page and never fails."""
    for kind, body in (("text/plain", b"x"), ("multipart/form-data", b"x"),
                       ("multipart/form-data; boundary=a", b"--a\r\nbroken")):  # fmt: skip
        answer = client.post("/en/log", content=body, headers={"content-type": kind})
        assert answer.status_code in {400, 422}
    big = client.post("/en/log", data={"log": "x" * (7 * 2**20)})
    assert big.status_code == 413


def test_another_start_can_be_chosen(client: StrictClient) -> None:
    """Of several starts the last is shown, and each of the others on demand."""
    text = f"{failed_start('0.25.1', FAILURES[2], 'profiling', LLAMA)}\n{KNOWN}"
    assert "It failed" not in words(paste(client, text))
    assert "It failed" in words(paste(client, text, start="0"))
    assert "It failed" not in words(paste(client, text, start="99"))


def test_model_and_card_can_be_named(client: StrictClient) -> None:
    """What the log does not tell can be said beside it, and then everything is compared."""
    text = KNOWN.replace("meta-llama/Llama-3.1-8B-Instruct", "our-org/our-tune").replace(
        "GPU 0: NVIDIA L40S", ""
    )
    assert "Predicted and printed" not in words(paste(client, text))
    named = words(paste(client, text, model="llama-3.1-8b", gpu="l40s"))
    assert "Predicted and printed" in named
    assert "Choose it below" not in named


def test_three_hard_starts(client: StrictClient) -> None:
    """Three starts that are hard to read come back with the figures that decide."""
    consumed = words(paste(client, hard_logs.CONSUMED))
    assert "Weights and all that stays take 81.70 GiB." in consumed
    assert "1.20 requests of 262,144 tokens" in consumed
    cards = consumed.partition("may be any of these: ")[2].partition(". Choose")[0]
    assert "RTX PRO 6000 Blackwell Server Edition" in cards
    ranks = words(paste(client, hard_logs.EIGHT_RANKS))
    assert "39 of 39 lines recognised" in ranks
    assert "14.15 GiB of this card are left for the cache" in ranks
    assert "divided over 8 cards, so the cache counts 8 times" in ranks
    overridden = words(paste(client, hard_logs.OVERRIDDEN))
    assert "By hand 50 blocks are used instead of the 65 that fit." in overridden
    assert "Runs, could be better" in overridden


def test_nothing_pasted_is_logged(client: StrictClient, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither text nor model of a paste appears in the service's own log."""
    paste(client, KNOWN.replace("8B-Instruct", "8B-Instruct-of-a-customer"))
    printed = capsys.readouterr()
    assert "of-a-customer" not in printed.out + printed.err


def test_other_pages_lead_here(client: StrictClient) -> None:
    """Start page, result and footer link to the page; its own links name its other language."""
    start = client.get("/en/").text
    assert start.count('href="/en/log"') >= 2
    bench = client.get("/en/workbench?model=llama-3.1-8b&gpu=l40s").text
    assert "Compare with your log" in bench
    assert urlsplit("/de/log").path in client.get("/en/log").text
