"""Counted lengths of requests as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wizard.length_histogram import MAX_BINS, histogram_text, read_length_histogram
from app.wizard.readers import UnreadableError


@pytest.mark.parametrize(
    "text", ["1000:12,2000:40", " 1000 : 12;2000:40 ", "1.000:12\n2.000:40", "1000:12, 2000:40,"]
)
def test_pairs_are_read_as_people_write_them(text: str) -> None:
    """Commas, semicolons, blanks and lines part the pairs; a point groups by three."""
    found = read_length_histogram(text)
    assert (found.upper_bounds, found.counts, found.requests) == ((1000, 2000), (12, 40), 52)


@given(st.dictionaries(st.integers(1, 10**7), st.integers(0, 10**12), min_size=1, max_size=40))
def test_what_is_written_is_read_again(pairs: dict[int, int]) -> None:
    """A link carries every histogram unchanged."""
    bounds = sorted(pairs)
    counts = [pairs[bound] for bound in bounds]
    text = histogram_text(bounds, counts)
    if not sum(counts):
        with pytest.raises(UnreadableError, match="histogram_empty"):
            read_length_histogram(text)
        return
    found = read_length_histogram(text)
    assert (list(found.upper_bounds), list(found.counts)) == (bounds, counts)


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [
        ("1000", "histogram_pair", ("pair", "1000")),
        ("1000:", "histogram_pair", ("pair", "1000:")),
        ("1000:-3", "histogram_pair", ("pair", "1000:-3")),
        ("0:3", "histogram_pair", ("pair", "0:3")),
        ("1,000:12", "histogram_pair", ("pair", "1")),
        ("2000:3,1000:4", "histogram_order", ("before", 2000)),
        (",".join(f"{n}:1" for n in range(1, MAX_BINS + 2)), "histogram_bins", ("bins", 101)),
        ("1" * 2_001, "too_long", ("maximum", 2_000)),
    ],
)
def test_what_is_no_histogram_is_named(text: str, code: str, number: tuple[str, object]) -> None:
    """The message can say which pair is wrong, and what the limit is."""
    with pytest.raises(UnreadableError, match=code) as caught:
        read_length_histogram(text)
    assert number in caught.value.numbers
