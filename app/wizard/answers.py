"""Answers: every input of a sizing, typed, read from a query string or a JSON object.

`parse_answers` never raises: what it cannot read it lists as problems, what it left out or renamed
as notices, and the text as entered stays at hand for the form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.catalog.model_search import nearest_names
from app.core.reasons import Number
from app.core.units import AUTO_MAX_MODEL_LEN
from app.wizard import pasted, readers
from app.wizard.inputs import BY_NAME, FORMAT_KEYS, INPUTS, RENAMED, UNSURE, Input

FORMAT_VERSION: Final = 1
DEFAULT_VLLM_VERSION: Final = "0.32.0"
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "text": readers.read_text,
    "flag": readers.read_flag,
    "object": readers.read_object,
    "integer": readers.read_integer,
    "size": readers.read_size,
    "length": readers.read_length,
}


@dataclass(frozen=True, slots=True)
class Answers:
    """What was asked. A field at its default means: left to vLLM, or to the rule api.md states.

    `max_model_len` is AUTO_MAX_MODEL_LEN for `auto`. JSON objects are canonical JSON text, so that
    answers can be compared and hashed. `unsure` names the fields answered with "I am not sure".
    `assume_plain_decoder` confirms that a pasted config of an architecture nobody knows may be read
    as a plain decoder, and does nothing for any other. `revision` is the commit at which a config
    was looked up on the hub; `model` is then the repository.
    """

    model: str | None = None
    revision: str | None = None
    hf_config: str | None = None
    hf_quant_config: str | None = None
    assume_plain_decoder: bool = False
    checkpoint: str | None = None
    gpu: str | None = None
    gpu_total_memory_bytes: int | None = None
    other_processes_gib: float = 0.0
    vllm_version: str = DEFAULT_VLLM_VERSION
    replicas: int = 1
    server: str | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    max_model_len: int | None = None
    kv_cache_dtype: str = "auto"
    block_size: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    async_scheduling: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    mamba_cache_mode: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    speculative_config: str | None = None
    dtype: str = "auto"
    enable_chunked_prefill: bool | None = None
    cpu_offload_gb: float = 0.0
    max_cudagraph_capture_size: int | None = None
    limit_mm_per_prompt: str | None = None
    language_model_only: bool = False
    enable_lora: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16
    hf_overrides: str | None = None
    available_kv_cache_memory_bytes: int | None = None
    measured_weights_gib: float | None = None
    measured_peak_activation_gib: float | None = None
    measured_non_torch_gib: float | None = None
    measured_cudagraph_gib: float | None = None
    measured_on: str | None = None
    peak_requests: int | None = None
    mean_request_tokens: int | None = None
    p95_request_tokens: int | None = None
    unsure: frozenset[str] = frozenset()

    def with_changes(self, **changes: Any) -> Answers:  # noqa: ANN401 - any field's type
        """Copy with other values; a changed field is no longer an unsure one."""
        return replace(self, **{"unsure": self.unsure.difference(changes), **changes})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something entered that is no answer: a code, the field, its text, and the numbers to name.

    Reading one field: `not_an_integer`, `decimals_with_binary_suffix` (suggestion), `not_a_number`,
    `ambiguous_number` (decimal), `not_a_flag`, `not_an_object`, `too_long` (maximum),
    `unprintable_character`, `out_of_bounds` (minimum, maximum), `broken_spec`.
    Between fields and catalogue: `missing`, `unknown_value` (nearest, known), `object_value` (key,
    minimum, maximum), `unknown_model`, `unknown_checkpoint`, `unknown_gpu`, `unknown_server`,
    `unknown_release` (each: nearest), `gpu_not_in_server` (server, server_gpu),
    `gpu_memory_unknown` (gpu), `pasted_and_named` (a pasted config beside a model), and what
    `catalog.hf_config` finds in a pasted config: `config_not_an_object`, `config_key_missing`
    (key), `config_value_invalid` (key, value, smallest, largest), `config_too_large` (key,
    entries, largest). Names outside INPUTS: `unknown_name` (nearest), `repeated`, `post_only`.
    Counted lengths of requests: those of `length_histogram.read_length_histogram`.
    """

    code: str
    field: str
    text: str
    numbers: tuple[tuple[str, Number], ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that was read another way than it was written, or not at all.

    Codes: `unknown_name` (`nearest` is the closest known name or ""), `renamed` (`nearest` is
    the name it was read as), `repeated` (the last one counts), `other_format` (a link of another
    version of this site), `other_data` (a link made with another catalogue).
    """

    code: str
    field: str
    text: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class ParsedAnswers:
    """The readable answers with what was wrong, and the text of every known field as entered."""

    answers: Answers
    problems: tuple[Problem, ...] = ()
    notices: tuple[Notice, ...] = ()
    raw: Mapping[str, str] = field(default_factory=dict)
    data_version: str | None = None


def parse_answers(
    params: Iterable[tuple[str, str]],
    *,
    lang: str = "en",
    page_keys: Collection[str] = (),
) -> ParsedAnswers:
    """Read the pairs of a query string, of a form, or of a JSON object written as such pairs.

    `page_keys` are names that belong to the page (theme, step ...) and pass in silence. Empty
    values count as absent; of repeated names the last counts, with a notice.
    """
    notices: list[Notice] = []
    raw = _last_texts((pair for pair in params if pair[0] not in page_keys), notices)
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    unsure: set[str] = set()
    for each in INPUTS:
        text = raw.get(each.name, "")
        if not text.strip():
            continue
        if each.unsure and text.strip().lower() == UNSURE:
            unsure.add(each.name)
            continue
        try:
            values[each.name] = _read(each, text, lang)
        except readers.UnreadableError as error:
            problems.append(Problem(error.code, each.name, text, error.numbers))
    _read_spec(raw.get("spec", ""), values, problems)
    notices.extend(_format_notices(raw.get("v", "")))
    return ParsedAnswers(
        answers=Answers(**values, unsure=frozenset(unsure)),
        problems=tuple(problems),
        notices=tuple(notices),
        raw=raw,
        data_version=raw.get("data") or None,
    )


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the known name closest to one that was mistyped, or "" where none is close."""
    return next(iter(nearest_names(known, name, 1)), "")


def _last_texts(pairs: Iterable[tuple[str, str]], notices: list[Notice]) -> dict[str, str]:
    raw: dict[str, str] = {}
    for key, text in pairs:
        name = _known_name(key)
        if not name:
            nearest = nearest_name(key.replace("-", "_"), [*BY_NAME, *FORMAT_KEYS])
            notices.append(Notice("unknown_name", key, text, nearest))
            continue
        if name != key:
            notices.append(Notice("renamed", key, text, name))
        if name in raw and raw[name] != text:
            notices.append(Notice("repeated", name, text))
        raw[name] = text
    return raw


def _known_name(key: str) -> str:
    """Return the input a key means: itself, a flag as the command line writes it, an old name."""
    if key in BY_NAME or key in FORMAT_KEYS:
        return key
    plain = key.removeprefix("--").replace("-", "_")
    return plain if plain in BY_NAME else RENAMED.get(plain, "")


def _read(each: Input, text: str, lang: str) -> object:
    if each.kind == "decimal":
        return _bounded(each, readers.read_decimal(text, lang))
    value = _READERS[each.kind](text)
    if each.kind == "length" and value == AUTO_MAX_MODEL_LEN:
        return value
    return _bounded(each, value)


def _bounded(each: Input, value: Any) -> Any:  # noqa: ANN401 - the kind's own type
    """Return a value within its input's bounds. Raises UnreadableError with both bounds."""
    low, high = each.minimum, each.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = (("minimum", low or 0), ("maximum", high or 0))
        raise readers.UnreadableError("out_of_bounds", bounds)
    return value


def _read_spec(text: str, values: dict[str, Any], problems: list[Problem]) -> None:
    if not text:
        return
    try:
        values.update(pasted.decode(text))
    except readers.UnreadableError as error:
        problems.append(Problem(error.code, "spec", "", error.numbers))


def _format_notices(version: str) -> Iterator[Notice]:
    if version and version != str(FORMAT_VERSION):
        yield Notice("other_format", "v", version)
