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

    gaps      what neither the log nor the person says
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


def _ways_out(
    start: Observation, prepared: Prepared, result: SizingResult, catalogue: Catalogue
) -> tuple[Way, ...]:
    if start.failure is None or prepared.request is None:
        return ()
    if not result.verdict_requests:
        return ways_out_of(prepared, result, catalogue)
    return tuple(
        Way(dict(change), prepared.answers.with_changes(**change), tried)
        for change, tried in failure_changes(start, start.failure, prepared.request)
    )
