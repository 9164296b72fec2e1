"""Decoding, line numbers and the tolerant reading of Python's own notation."""

import pytest

from app.readings.log_text import decode, split_lines
from app.readings.observation import ArgValue
from app.readings.python_literal import read_entries
from app.readings.start_log import read_start_log
from tests.readings.logs import start_log
from tests.readings.servers import SERVERS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_files_of_every_encoding_are_decoded(encoding: str) -> None:
    """UTF-8 with and without mark, and what PowerShell's redirection writes."""
    text = start_log("0.32.0", SERVERS[0]).text
    assert decode(text.encode(encoding)) == text


def test_bytes_of_no_encoding_are_kept_readable() -> None:
    """What is no text becomes a replacement character, and the rest is read."""
    text = decode(b"\xff\x80 Model loading took 15.0 GiB memory and 5.0 seconds")
    assert read_start_log(text).starts[0].observed.weights_gib == 15.0
    assert decode(b"") == ""


def test_lines_are_those_of_a_text_field() -> None:
    """LF, CR LF and a lone CR each end a line; nothing else does."""
    assert split_lines("a\nb\r\nc\rd\x0be\u2028f\n") == ["a", "b", "c", "d\x0be\u2028f", ""]


def test_lines_of_equal_length_keep_their_numbers() -> None:
    """A trimmed paste may look broken by a mail program; each figure still has its own line."""
    text = (
        "Model loading took 15.0 GiB memory and 5.001234 seconds again\n"
        "Available KV cache memory: 20.0 GiB as printed by the workers\n"
        "GPU KV cache size: 163,840 tokens as printed by the engine it\n"
        "Maximum concurrency for 32,768 tokens per request: 5.00x, so.\n"
        "Graph capturing finished in 11 secs, took 0.45 GiB of memory."
    )
    assert [line.line for line in read_start_log(text).lines] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "'a': 1, 'b': {'c': [1, 2.5, 'x']}, 'd': None}",
            {"a": 1, "b": {"c": [1, 2.5, "x"]}, "d": None},
        ),
        (
            "a='x y', b=Config(c='mtp', d=3), e=torch.bfloat16",
            {"a": "x y", "b": {"c": "mtp", "d": 3}, "e": "torch.bfloat16"},
        ),
        ("a=<Mode.FULL: 2>, b=cuda:0, ..., c=-1", {"a": "<Mode.FULL: 2>", "b": "cuda", "c": -1}),
        ("'a': True, 'b': {'c': {'d': [1", {"a": True}),
        ("'a': 1, 'b': 'unfinished", {"a": 1}),
        ("'it\\'s': \"q\\\"\"", {"it's": 'q"'}),
        ("a=1) and b=2", {"a": 1}),
        ("no mapping at all", {}),
        ("{" * 200, {}),
        ("a=,b=2", {"a": None, "b": 2}),
    ],
)  # fmt: skip
def test_listings_are_read_as_far_as_they_go(text: str, expected: dict[str, ArgValue]) -> None:
    """Objects, cuts and abridgements are no obstacle, and no value is made up."""
    assert read_entries(text, 0, len(text))[0] == expected
