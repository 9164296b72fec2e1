"""From a metrics page to the need page: the counted lengths as entries of its form."""

from __future__ import annotations

from app.catalog.catalogue import Catalogue
from app.catalog.model_search import find_model
from app.core.workload import histogram_workload
from app.readings.metrics_page import MetricsReading
from app.readings.request_lengths import RequestLengths
from app.web.need_form import HISTOGRAM, MEASURED
from app.wizard.length_histogram import histogram_text


def mix_pairs(reading: MetricsReading, catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return names and texts; the model where the catalogue has it, the peak where one is seen.

    The context is the server's, or where the page does not tell the one that is enough. Empty
    without counted lengths.
    """
    lengths = reading.lengths
    if lengths is None:
        return []
    pairs = []
    name = reading.engines[0].model
    found = find_model(catalogue.models, name) if name else None
    if found is not None:
        pairs.append(("model", found.model.slug))
        if found.checkpoint is not None:
            pairs.append(("checkpoint", found.checkpoint.hf_id))
    in_flight = sum(
        (each.num_requests_running or 0) + (each.num_requests_waiting or 0)
        for each in reading.engines
    )
    if in_flight:
        pairs.append(("peak_requests", str(in_flight)))
    length = reading.engines[0].max_model_len or _sufficient_length(lengths)
    return [
        *pairs,
        ("preset", MEASURED),
        ("max_model_len", str(length)),
        (HISTOGRAM, histogram_text(lengths.upper_bounds, lengths.counts)),
        ("answer_percent", str(answer_percent(lengths))),
    ]


def answer_percent(lengths: RequestLengths) -> float:
    """Generated part of all tokens in percent, as the form takes it."""
    return round(100 * lengths.answer_share, 1)


def _sufficient_length(lengths: RequestLengths) -> int:
    workload = histogram_workload(lengths.upper_bounds, lengths.counts, lengths.answer_share)
    return workload.sufficient_max_model_len()
