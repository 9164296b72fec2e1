"""The form of a need: the answers of a sizing that matter here, and what only a need has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from app.catalog.catalogue import Catalogue
from app.core.arrivals import InFlight, requests_in_flight
from app.core.workload import Workload, histogram_workload, lognormal_workload
from app.web.forms import Form, read_form
from app.wizard.answers import Answers, Problem
from app.wizard.length_histogram import LengthHistogram, read_length_histogram
from app.wizard.need import BITS, usual_bits
from app.wizard.presets import BY_CODE, PRESETS, Preset
from app.wizard.readers import UnreadableError, read_decimal, read_integer, read_text

FULL_LENGTH: Final = "full"
MEASURED: Final = "measured"
HISTOGRAM: Final = "length_histogram"
DEFAULT_REQUESTS_PER_HOUR: Final = 6.0
CARDS: Final = ("sold", "all")
# The boxes as they stood when the form was shown: left alone, they follow the model.
UNTOUCHED_BITS: Final = "usual_bits"
_WHOLE: Final = (
    # name, smallest, largest
    ("users", 1, 10_000_000),
    ("shared_prefix_tokens", 0, 10_000_000),
)
_DECIMAL: Final = (
    ("answer_percent", 0.1, 99.0),
    ("requests_per_hour", 0.01, 100_000.0),
    ("seconds", 0.1, 86_400.0),
)
OWN_NAMES: Final = (
    *(name for name, _, _ in _WHOLE), *(name for name, _, _ in _DECIMAL),
    "preset", HISTOGRAM, "bits", UNTOUCHED_BITS, "cards", "spare", "offer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NeedForm:
    """What was entered. Numbers left empty are those of the preset, or their stated default.

    `lengths`, where given, count before a mean, and a mean before the preset's. `is_measured` says
    that they come from a metrics page. `usual_bits` are allowed where nobody asks for others.
    """

    sizing: Form
    texts: dict[str, str]
    own_problems: tuple[Problem, ...]
    numbers: dict[str, float]
    preset: Preset | None
    lengths: LengthHistogram | None
    is_measured: bool
    bits: tuple[int, ...]
    usual_bits: tuple[int, ...]
    cards: str
    spare: bool
    offer: int

    @property
    def answers(self) -> Answers:
        """The readable answers of a sizing."""
        return self.sizing.answers

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that could not be used."""
        return (*self.sizing.problems, *self.own_problems)

    @property
    def notices(self) -> tuple[Any, ...]:
        """What was read another way than it was written."""
        return self.sizing.notices

    def value(self, name: str) -> str:
        """Return the text of a field as entered; what the preset filled in was not."""
        own = name in OWN_NAMES or (name == "max_model_len" and self.preset is not None)
        text = self.texts.get(name, "") if own else self.sizing.value(name)
        return text if text.isprintable() else ""

    def problem(self, name: str) -> Problem | None:
        """Return the first problem of a field."""
        return next((each for each in self.problems if each.field == name), None)

    def number(self, name: str, otherwise: float) -> float:
        """Return an entered number, else what stands for it."""
        return self.numbers.get(name, otherwise)

    @property
    def seconds(self) -> float:
        """How long a request is in flight."""
        return self.number("seconds", (self.preset or PRESETS[0]).seconds)

    @property
    def requests_per_hour(self) -> float:
        """Requests that one user sends in the busiest hour."""
        return self.number("requests_per_hour", DEFAULT_REQUESTS_PER_HOUR)

    def in_flight(self) -> InFlight | None:
        """Requests in flight from the number of users; None where the peak was entered."""
        if self.answers.peak_requests is not None or "users" not in self.numbers:
            return None
        users = int(self.numbers["users"])
        return requests_in_flight(users, self.requests_per_hour, self.seconds)

    def peak_requests(self) -> int | None:
        """Requests in flight at the peak; None where neither they nor users are known."""
        known = self.answers.peak_requests
        if known is not None:
            return known
        found = self.in_flight()
        return None if found is None else found.peak

    @property
    def usual_prefix_tokens(self) -> int:
        """Common beginning where none is entered: none for lengths that were counted."""
        return self.preset.shared_prefix_tokens if self.preset and self.lengths is None else 0

    def workload(self) -> Workload | None:
        """Lengths of the requests; None where all may have the declared length."""
        preset, answers = self.preset, self.answers
        usual = preset or PRESETS[0]
        answer_share = self.number("answer_percent", usual.answer_percent) / 100
        prefix = int(self.number("shared_prefix_tokens", self.usual_prefix_tokens))
        if self.lengths is not None:
            bounds, counts = self.lengths.upper_bounds, self.lengths.counts
            return histogram_workload(bounds, counts, answer_share, prefix)
        mean = answers.mean_request_tokens or (preset.mean_request_tokens if preset else None)
        if mean is None:
            return None
        p95 = answers.p95_request_tokens
        if p95 is None and preset is not None and answers.mean_request_tokens is None:
            p95 = preset.p95_request_tokens
        return lognormal_workload(max(2, mean), max(2, p95 or mean), answer_share, prefix)


def read_need(pairs: Iterable[tuple[str, str]], language: str, catalogue: Catalogue) -> NeedForm:
    """Read the pairs of a page's query; what is empty counts as absent."""
    given = [(name, text) for name, text in pairs if text.strip()]
    texts = {name: text for name, text in given if name in {*OWN_NAMES, "max_model_len"}}
    if HISTOGRAM in texts:
        texts[HISTOGRAM] = " ".join(texts[HISTOGRAM].split())
    preset = BY_CODE.get(texts.get("preset", PRESETS[0].code))  # type: ignore[call-overload]
    if texts.get("preset") in {FULL_LENGTH, MEASURED}:
        preset = None
    rest = [pair for pair in given if pair[0] not in OWN_NAMES and pair[0] not in {"gpu", "server"}]
    if preset is not None and not any(name == "max_model_len" for name, _ in rest):
        rest.append(("max_model_len", str(preset.max_model_len)))
    form = read_form([*rest, ("gpu", catalogue.vendor.cards[0])], language, catalogue)
    problems: list[Problem] = []
    numbers = read_numbers(texts, language, problems)
    lengths = read_lengths(texts, problems)
    main = form.prepared.request.checkpoint.precision if form.prepared.request else ""
    usual = usual_bits(main)
    bits = tuple(each for each in BITS if ("bits", str(each)) in given)
    if " ".join(map(str, bits)) == texts.get(UNTOUCHED_BITS, ""):
        bits = usual
    cards = texts.get("cards", "")
    return NeedForm(
        sizing=form,
        texts=texts,
        own_problems=tuple(problems),
        numbers=numbers,
        preset=preset,
        lengths=lengths,
        is_measured=texts.get("preset") == MEASURED,
        bits=bits or usual,
        usual_bits=usual,
        cards=cards if cards in CARDS or cards in catalogue.gpus else CARDS[0],
        spare=texts.get("spare") == "true",
        offer=int(texts["offer"]) if texts.get("offer", "").isdecimal() else 0,
    )


def read_lengths(texts: dict[str, str], problems: list[Problem]) -> LengthHistogram | None:
    """Read counted lengths where there are any; what is wrong is added to `problems`."""
    text = texts.get(HISTOGRAM)
    if text is None:
        if texts.get("preset") == MEASURED:
            problems.append(Problem("histogram_empty", HISTOGRAM, ""))
        return None
    try:
        return read_length_histogram(text)
    except UnreadableError as error:
        problems.append(Problem(error.code, HISTOGRAM, text[:256], error.numbers))
        return None


def read_numbers(texts: dict[str, str], language: str, problems: list[Problem]) -> dict[str, float]:
    """Read the numbers that only a need has; what is wrong is added to `problems`."""
    readers: list[tuple[str, float, float, Callable[[str], float]]] = [
        *((*each, read_integer) for each in _WHOLE),
        *((*each, lambda text: read_decimal(text, language)) for each in _DECIMAL),
    ]
    found: dict[str, float] = {}
    for name, low, high, read in readers:
        text = texts.get(name)
        if text is None:
            continue
        try:
            value = read(read_text(text))
        except UnreadableError as error:
            problems.append(Problem(error.code, name, text, error.numbers))
            continue
        if low <= value <= high:
            found[name] = value
        else:
            bounds = (("minimum", low), ("maximum", high))
            problems.append(Problem("out_of_bounds", name, text, bounds))
    return found
