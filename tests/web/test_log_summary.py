"""The summary of a pasted log, and the way on from it: choices, ways out, and the next server."""

from app.quotes.figures import figures_of
from tests.readings.logs import start_log
from tests.readings.servers import Server
from tests.strict_client import StrictClient, parse_strictly
from tests.web.log_pages import KNOWN, LLAMA, paste, rendered, words

STARTED = start_log("0.25.1", LLAMA).text
TOTAL = (
    "(EngineCore pid=1) INFO 05-01 10:00:00 [gpu_worker.py:391] Free memory on device "
    "(43.9/44.52 GiB) on startup. Desired GPU memory utilization is (0.92, 40.96 GiB).\n"
)


def test_another_card_forgets_the_memory_of_the_logged_one(client: StrictClient) -> None:
    """Going on to a larger card with a log's link uses that card's own memory, in every link."""
    tree = parse_strictly(paste(client, f"{STARTED}\n{TOTAL}", gpu="l40s"))
    (link,) = tree.findall(".//a[@class='button']")
    address = link.get("href") or ""
    assert "gpu=l40s" in address
    assert "gpu_total_memory_bytes=" in address
    assert "44.52 GiB on the card" in words(client.get(address).text)
    larger = client.get(address.replace("gpu=l40s", "gpu=h200-nvl", 1)).text
    assert "44.52" not in words(larger)
    field = parse_strictly(larger).find(".//input[@name='gpu_total_memory_bytes']")
    assert field is not None
    assert not field.get("value")


def test_what_is_missing_is_chosen_where_it_is_said(client: StrictClient) -> None:
    """Model and card are chosen beside the sentence that asks for them, likely ones first."""
    log = STARTED.replace("8B-Instruct", "8B-Instruct-2507-FP8")
    tree = parse_strictly(paste(client, f"{log}\n{TOTAL}"))
    (summary,) = tree.findall(".//section[@id='summary']")
    selects = summary.findall(".//select")
    assert [(each.get("name"), each.get("form")) for each in selects] == [
        ("model", "log-form"), ("gpu", "log-form"),
    ]  # fmt: skip
    assert tree.find(".//form[@id='log-form']//select") is None
    likely = [select.find("optgroup") for select in selects]
    assert all(each is not None for each in likely)
    assert next(option.get("value") for option in likely[0] or ()) == "llama-3.1-8b"
    text = "".join(summary.itertext())
    assert "Perhaps one of these: Llama 3.1 8B Instruct" in text
    assert "A40, L40, L40S" in text


def test_several_services_are_told_apart(client: StrictClient) -> None:
    """Of two interleaved services one is shown, named, and the other can be chosen by its name."""
    small = Server("known", "Qwen/Qwen3-8B", 36, 8, 128, 15.27, 44.39, 43.9, 8192)
    logs = {"chat-1": STARTED, "embed-1": start_log("0.25.1", small).text}
    text = "\n".join(f"{name}  | {line}" for name, log in logs.items() for line in log.splitlines())
    shown = paste(client, text, gpu="l40s")
    assert "The paste holds 2 starts. This is the one of embed-1" in words(shown)
    assert "chat-1 · 1, from line 1 · meta-llama/Llama-3.1-8B-Instruct" in words(shown)
    assert "This is the one of chat-1" in words(paste(client, text, gpu="l40s", start="0"))
    assert "The paste holds" not in words(paste(client, KNOWN))


def test_services_that_may_share_a_card_get_no_larger_share(client: StrictClient) -> None:
    """What helps most holds no larger share for one of two services, but for a lone one it does."""
    share = STARTED.replace("'max_model_len'", "'gpu_memory_utilization': 0.6, 'max_model_len'")
    alone = paste(client, share, gpu="l40s")
    both = "\n".join(
        f"{name}  | {line}" for name in ("chat", "embed") for line in share.splitlines()
    )
    helpful = [
        "".join(parse_strictly(page).find(".//ol[@class='helpful']").itertext())  # type: ignore[union-attr]
        for page in (alone, paste(client, both, gpu="l40s"))
    ]
    assert "--gpu-memory-utilization 0.95" in helpful[0]
    assert "--gpu-memory-utilization 0.95" not in helpful[1]


def test_ways_out_name_no_flag_that_vllm_does_not_have(client: StrictClient) -> None:
    """Other files and other cards are named; `--checkpoint` and `--gpu` are no flags of vLLM."""
    log = (
        "INFO 10-14 08:01:12 [api_server.py:1990] vLLM API server version 0.28.0\n"
        "INFO 10-14 08:01:12 [api_utils.py:286] non-default args: {'model': "
        "'meta-llama/Llama-3.3-70B-Instruct', 'tensor_parallel_size': 2, 'max_model_len': 65536}\n"
        "INFO 10-14 08:03:12 [gpu_model_runner.py:5448] Model loading took 65.74 GiB memory and "
        "93.1 seconds\n"
        "INFO 10-14 08:04:01 [gpu_worker.py:579] Available KV cache memory: -0.44 GiB\n"
        "ERROR 10-14 08:04:01 [core.py:866] ValueError: No available memory for the cache blocks. "
        "Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    text = words(paste(client, log, gpu="h100-80gb-hbm3"))
    ways = text.partition("What starts instead")[2].partition("Size the next server")[0]
    assert "--tensor-parallel-size 4" in ways
    assert "requests of 65,536 tokens" in ways
    assert "the files RedHatAI/" in ways
    assert "the card RTX PRO 6000 Blackwell Server Edition" in ways
    assert "--checkpoint" not in ways
    assert "--gpu " not in ways
    memory = text.partition("Memory per card, as measured")[2].partition("Predicted and")[0]
    assert "\u22120.44 GiB" in memory


def test_the_length_that_vllm_names_is_the_first_way_out(client: StrictClient) -> None:
    """A start too long for its cache may have the length of vLLM's own text, and other cards."""
    log = (
        "INFO 06-14 10:22:03 [api_server.py:1287] vLLM API server version 0.9.2\n"
        "INFO 06-14 10:22:03 [cli_args.py:309] non-default args: {'model': 'Qwen/Qwen3-32B-AWQ'}\n"
        "INFO 06-14 10:22:50 [gpu_model_runner.py:1770] Model loading took 18.1452 GiB and 12.1 "
        "seconds\nINFO 06-14 10:23:22 [gpu_worker.py:232] Available KV cache memory: 1.52 GiB\n"
        "ERROR 06-14 10:23:22 [core.py:586] ValueError: To serve at least one request with the "
        "models's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the "
        "available KV cache memory (1.52 GiB). Based on the available memory, the estimated "
        "maximum model length is 6208. Try increasing `gpu_memory_utilization`.\n"
    )
    text = words(paste(client, log, gpu="rtx-4090"))
    ways = text.partition("What starts instead")[2].partition("Size the next server")[0]
    assert ways.split()[:6] == ["--max-model-len", "6208", "1", "request", "of", "6,208"]
    assert ways.count("--max-model-len") == 1
    assert "the card " in ways


def test_a_length_that_the_log_admits_is_taken(client: StrictClient) -> None:
    """Files made for longer requests than the chosen model are compared with the logged length."""
    log = STARTED.replace("8B-Instruct", "8B-Instruct-long").replace("32768", "147456")
    log = log.replace("32,768", "147,456")
    text = words(paste(client, log, model="llama-3.1-8b", gpu="h200"))
    assert "Counted is with the 147,456 tokens that the log admits" in text
    assert "would not start this server" not in text
    usual = words(paste(client, STARTED, model="llama-3.1-8b", gpu="h200"))
    assert "that the log admits" not in usual


def test_an_empty_last_line_is_no_line(client: StrictClient) -> None:
    """The line break at the end of a paste is not counted as a line that was not recognised."""
    line = "INFO 10-14 08:01:12 [api_server.py:1990] vLLM API server version 0.28.0\n"
    assert "1 of 1 line" in words(paste(client, line))


def test_no_places_are_judged_while_the_card_is_unknown(client: StrictClient) -> None:
    """The default of --max-num-seqs hangs on the card: no finding speaks of it before."""
    unknown = words(paste(client, f"{STARTED}\n{TOTAL}"))
    assert "default for --max-num-seqs is not known" in unknown
    assert "What helps most" in unknown
    assert "requests may run" not in unknown
    assert "requests may run" in words(paste(client, STARTED, gpu="l40s"))


def test_a_sizing_hands_its_card_to_the_form(client: StrictClient) -> None:
    """From a result the card is chosen already; the model is left to the log."""
    page = parse_strictly(client.get("/en/workbench?model=qwen3-14b&gpu=l40s").text)
    (address,) = [
        link.get("href") or "" for link in page.findall(".//a")
        if (link.text or "") == "Compare with your log"
    ]  # fmt: skip
    form = parse_strictly(client.get(address).text)
    chosen = [each.get("value") for each in form.findall(".//option[@selected]")]
    assert chosen == ["l40s"]
    assert not parse_strictly(client.get("/en/log?gpu=none").text).findall(".//option[@selected]")


def test_a_measured_server_says_so_beside_its_verdict(client: StrictClient) -> None:
    """A sizing from a log says that it is measured, without a range; another one that it is not."""
    tree = parse_strictly(paste(client, KNOWN))
    (link,) = tree.findall(".//a[@class='button']")
    address = link.get("href") or ""
    measured = words(client.get(address).text)
    assert "Measured: the memory is that of this server's start log." in measured
    assert "by the memory that its start log tells" in measured
    assert "Nine of ten starts" not in measured
    carried = words(client.get(address.replace("gpu=l40s", "gpu=h200-nvl", 1)).text)
    assert "carried over from the start log of another server" in carried
    assert "Nine of ten starts" in carried
    estimated = words(client.get("/en/workbench?model=qwen3-14b&gpu=l40s").text)
    assert "the memory is" not in estimated


def test_a_quote_says_that_its_figure_is_measured(client: StrictClient) -> None:
    """The figures of a request made from a log say so; those of an estimate do not."""
    (link,) = parse_strictly(paste(client, KNOWN)).findall(".//a[@class='button']")
    query = (link.get("href") or "").partition("?")[2]
    for asked, measured in ((query, True), ("model=llama-3.1-8b&gpu=l40s", False)):
        result = client.get(f"/api/v1/sizing?{asked}").json()
        figures = figures_of(result)
        assert figures.is_measured is measured
        shown = rendered(client, "en", "quote/figures.html", "expected_words", figures)
        assert shown.endswith("from a start log") is measured
