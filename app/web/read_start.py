"""One start of a pasted log, worked out: its server, what was measured, what could be better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.catalog.catalogue import Catalogue
from app.core.result import SizingResult
from app.core.sizing import size
from app.readings.calibrate import NOTHING_MEASURED, Calibration, calibrate
from app.readings.comparison import Alternatives, ComparedTerm, compare
from app.readings.failure_changes import failure_changes
from app.readings.findings import Finding, find
from app.readings.observation import Observation
from app.readings.stated_server import StatedServer, stated_server
from app.wizard.alternatives import alternatives_for
from app.wizard.answers import Answers, parse_answers
from app.wizard.permalink import query_pairs, text_of
from app.wizard.readers import canonical_json
from app.wizard.sizing_request import Prepared, to_request
from app.wizard.ways_out import Way, ways_out_of

MAX_WAYS_OUT: Final = 4
_CLOSED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model", "model_unknown"),
    "gpu": ("gpu", "gpu_ambiguous", "max_num_seqs"),
}


@dataclass(frozen=True, slots=True)
class ReadStart:
    """Everything that is known of one start.

    gaps      what neither the log nor the person says; `max_model_len` where the log admits longer
              requests than the model's config
    unread    inputs of the log that a sizing does not take, by name
    prepared  the server with what was measured; its `request` is None where model or card are
              unknown, and everything below is then empty
    result    the sizing that starts from the measurement
    answers   inputs of that sizing: "size the next server from this log"
    ways_out  changes after which a start that failed is expected to succeed, each sized
    """

    start: Observation
    stated: StatedServer
    gaps: tuple[str, ...]
    unread: tuple[str, ...]
    prepared: Prepared
    calibration: Calibration = NOTHING_MEASURED
    result: SizingResult | None = None
    answers: Answers | None = None
    compared: tuple[ComparedTerm, ...] = ()
    findings: tuple[Finding, ...] = ()
    ways_out: tuple[Way, ...] = ()


def read_start(
    start: Observation, catalogue: Catalogue, chosen: Mapping[str, str] | None = None
) -> ReadStart:
    """Work out one start. `chosen` are inputs that the log does not tell and a person gave."""
    stated = stated_server(start, catalogue)
    inputs = {name: text_of(value) for name, value in stated.inputs.items()}
    said = {name: text for name, text in (chosen or {}).items() if text.strip()}
    inputs.update(said)
    closed = {gap for name in said for gap in _CLOSED_BY.get(name, ())}
    gaps = tuple(gap for gap in stated.gaps if gap not in closed)
    answers, unread = _readable(inputs, catalogue)
    prepared = to_request(answers, catalogue)
    if longer := _as_long_as_logged(start, prepared, catalogue):
        prepared, gaps = longer, (*gaps, "max_model_len")
    if prepared.request is None:
        return ReadStart(start, stated, gaps, unread, prepared)
    calibration = calibrate(prepared.request, start.observed, start.failure)
    measured = _measured_answers(prepared.answers, calibration)
    taken = to_request(measured, catalogue)
    if taken.request is None:
        return ReadStart(start, stated, gaps, unread, prepared)
    result = size(taken.request)
    others = Alternatives(
        checkpoints=alternatives_for(prepared, catalogue).checkpoints,
        releases=catalogue.releases.rows,
    )
    return ReadStart(
        start=start,
        stated=stated,
        gaps=gaps,
        unread=unread,
        prepared=taken,
        calibration=calibration,
        result=result,
        answers=measured,
        compared=compare(start, prepared.request, others),
        findings=() if start.failure else _told(find(start, taken.request), gaps),
        ways_out=_ways_out(start, taken, result, catalogue)[:MAX_WAYS_OUT],
    )


def _as_long_as_logged(
    start: Observation, prepared: Prepared, catalogue: Catalogue
) -> Prepared | None:
    """Take the length that the log admits where the model's config allows less.

    Files made from a model may be trained for longer requests. None where nothing is to be changed.
    """
    if prepared.request is None or prepared.answers.hf_overrides is not None:
        return None
    reason = size(prepared.request).reason
    refused = start.failure is not None and start.failure.code == "context_too_long"
    if reason is None or reason.code != "context_too_long" or refused:
        return None
    numbers = dict(reason.numbers)
    overrides = canonical_json({str(numbers["key"]): numbers["max_model_len"]})
    longer = to_request(prepared.answers.with_changes(hf_overrides=overrides), catalogue)
    if longer.request is None:
        return None
    still = size(longer.request).reason
    return None if still is not None and still.code == reason.code else longer


def _told(findings: tuple[Finding, ...], gaps: tuple[str, ...]) -> tuple[Finding, ...]:
    """Say nothing about places while their number is a guess: the card decides the default."""
    if "max_num_seqs" not in gaps:
        return findings
    return tuple(each for each in findings if "max_num_seqs" not in each.numbers)


def _readable(inputs: Mapping[str, str], catalogue: Catalogue) -> tuple[Answers, tuple[str, ...]]:
    """Read the inputs as answers, leaving out those that cannot be read or are not known here."""
    parsed = parse_answers(inputs.items())
    unread = [problem.field for problem in parsed.problems]
    kept = {name: text for name, text in inputs.items() if name not in unread}
    problems = to_request(parsed.answers, catalogue).problems
    wrong = [each.field for each in problems if each.field in kept and each.field != "model"]
    if wrong:
        kept = {name: text for name, text in kept.items() if name not in wrong}
        unread += wrong
    return parse_answers(kept.items()).answers, tuple(dict.fromkeys(unread))


def _measured_answers(answers: Answers, calibration: Calibration) -> Answers:
    """Put measured terms into the answers, with the server they were read on."""
    terms = calibration.inputs()
    if not terms:
        return answers
    server = {name: _plain(text) for name, text in query_pairs(answers) or ()}
    return answers.with_changes(**terms, measured_on=canonical_json(server))


def _plain(text: str) -> str | int | float:
    """Write whole numbers of a link as numbers, which is shorter in JSON."""
    return int(text) if text.isdecimal() else text


def requests_of(way: Way) -> int:
    """Requests that may be promised after a change; one at least, because vLLM starts then."""
    return max(1, way.result.verdict_requests)


def _ways_out(
    start: Observation, prepared: Prepared, result: SizingResult, catalogue: Catalogue
) -> tuple[Way, ...]:
    """What vLLM's own text names first, then what a sizing finds; one shorter length is enough."""
    if start.failure is None or prepared.request is None:
        return ()
    named = tuple(
        Way(dict(change), prepared.answers.with_changes(**change), tried)
        for change, tried in failure_changes(start, start.failure, prepared.request)
    )
    if result.verdict_requests:
        return named
    shorter = any("max_model_len" in way.changes for way in named)
    found = ways_out_of(prepared, result, catalogue)
    return (*named, *(way for way in found if not shorter or set(way.changes) != {"max_model_len"}))
