"""The memory model is measured on sources it was not fitted on, and the measure can fail."""

import json
from dataclasses import asdict, replace
from functools import cache

import pytest

from app.catalog.measurements import load_measurements
from app.core.sizing import size
from app.tools.accuracy import (
    BARS,
    PREDICTED_WEIGHTS_BARS,
    RESULT,
    Row,
    below_bar,
    crossed,
    discrete,
    shuffled,
    worse,
    wrong_outcomes,
)
from app.tools.fit import fit
from app.tools.naive import NAIVE, naive_score
from app.tools.scoring import Score, score, summarise
from app.tools.starts import MEASUREMENTS, Start, read_starts
from tests.shipped import catalogue

pytestmark = pytest.mark.slow


@cache
def starts() -> tuple[Start, ...]:
    """Return every published start that can be scored."""
    return read_starts(catalogue())[0]


@cache
def rows() -> tuple[Row, ...]:
    """Return every start, scored without its own source."""
    return crossed(starts())


def logged() -> list[Score]:
    """Return the scores of discrete cards with their logged weights."""
    return [row.logged for row in discrete(rows())]


def test_every_published_start_can_be_sized() -> None:
    """Models, checkpoints, cards and releases of the table are in the catalogue."""
    assert [s.id for s in starts() if s.request is None] == []


def test_unseen_sources_meet_the_bars() -> None:
    """Errors, promises, coverage and width, cross-validated by source."""
    assert below_bar(summarise(logged()), BARS) == []


def test_predicted_weights_meet_their_bar() -> None:
    """Weights from shapes instead of the log cost a tenth of a GiB."""
    predicted = [r.predicted for r in discrete(rows()) if r.start.weights_predictable]
    assert below_bar(summarise(predicted), PREDICTED_WEIGHTS_BARS) == []


def test_starts_that_failed_are_called_failing_and_no_other() -> None:
    """Six failed starts can be reconstructed; every other start worked."""
    assert wrong_outcomes(rows()) == []
    assert sum(row.start.failed for row in rows()) == 6


def test_a_replayed_failure_names_the_length_that_vllm_named() -> None:
    """0.58 GiB for Qwen2.5 32B: at most 2,368 tokens, as that log says."""
    (replayed,) = [start for start in starts() if start.id == "row-084"]
    reason = size(replayed.asked(logged_weights=True)).reason
    assert reason is not None
    assert reason.estimated_max_model_len == replayed.printed["estimated_max_model_len"]


def test_every_start_outside_its_range_is_explained_as_far_as_it_can_be() -> None:
    """A miss carries a code: what the prediction cannot know, or that nobody knows."""
    assert [
        row.start.id for row in rows() if row.logged.covered is False and not row.start.miss
    ] == []


def test_shuffled_logs_miss_the_bars() -> None:
    """The control: each prediction beside the next start's log."""
    assert below_bar(summarise(shuffled(logged())), BARS)


def test_no_naive_formula_meets_the_bars() -> None:
    """Constants and shares on the weights miss what the terms reach."""
    for formula in NAIVE.values():
        scores = [naive_score(row.start, formula) for row in discrete(rows())]
        assert below_bar(summarise(scores), BARS)


def test_an_outcome_turned_around_is_noticed() -> None:
    """The control of the failing starts: a start that worked, called failed."""
    turned = [replace(row, start=replace(row.start, failed=not row.start.failed)) for row in rows()]
    assert len(wrong_outcomes(turned)) == len(rows())


def test_a_figure_worse_than_the_committed_one_is_noticed() -> None:
    """A larger error, a smaller share within 10 %; coverage has a bar of its own."""
    now = asdict(summarise(logged()))
    assert worse(now, now) == []
    better = {**now, "available_median_gib": 0.0, "tokens_within_10_percent": 1.0}
    assert len(worse(now, better)) == 2
    assert worse(better, now) == []


def test_the_published_table_is_the_one_this_model_gives() -> None:
    """data/measurements/accuracy.json was written by the coefficients beside it."""
    published = json.loads(RESULT.read_text(encoding="utf-8"))
    now = asdict(summarise(logged()))
    for name, value in published["summary"].items():
        assert now[name] == pytest.approx(value, abs=1e-6), name
    assert len(published["rows"]) == len(rows())
    assert all(row["reason"] for row in published["unusable"])


def test_the_committed_coefficients_are_what_fitting_gives() -> None:
    """`make fit` on the published starts changes nothing."""
    committed = load_measurements(MEASUREMENTS)
    for row, fitted in zip(committed.rows, fit(committed, starts()).rows, strict=True):
        assert fitted.bounds == pytest.approx(row.bounds, rel=2e-3, abs=2e5), row.term


def test_without_starts_the_priors_stand() -> None:
    """Fitting to nothing gives back what was known before."""
    committed = load_measurements(MEASUREMENTS)
    for row in fit(committed, []).rows:
        assert row.bounds == (row.prior or row.bounds)


def test_a_score_compares_what_the_log_shows() -> None:
    """Errors are predicted minus printed; what the log leaves out has none."""
    by_id = {start.id: start for start in starts()}
    whole = score(by_id["row-001"], logged_weights=True)
    assert whole.available_error_gib == pytest.approx((whole.available_gib or 0) - 11.57)
    assert whole.tokens_error == pytest.approx((whole.tokens or 0) / 75824 - 1)
    assert whole.covered is True
    failed = score(by_id["row-024"], logged_weights=True)
    assert failed.available_error_gib is None
    assert failed.tokens_error is None
    assert failed.covered is None
    assert failed.fails
    negative = score(by_id["row-023"], logged_weights=True)
    assert negative.relative_error is None
