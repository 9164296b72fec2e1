"""The table of layouts where vLLM refuses the context."""

import pytest

from tests.strict_client import StrictClient

CASE = "model=qwen3-32b&gpu=rtx-pro-6000-server&server=2x-rtx-pro-6000-server"


@pytest.mark.parametrize(
    ("length", "sentence"),
    [
        ("999999", "Every way to use its cards."),
        ("8192", "Requests of 8,192 tokens at the same time, for every way to use its cards."),
    ],
)
def test_a_length_that_no_start_has_is_not_counted_in(
    client: StrictClient, length: str, sentence: str
) -> None:
    """Where the context is refused, no request has a length to name."""
    page = client.get(f"/en/workbench?{CASE}&max_model_len={length}").text
    assert sentence in page
