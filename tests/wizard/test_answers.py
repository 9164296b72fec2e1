"""A query string becomes answers, problems and notices; never an exception."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wizard import pasted
from app.wizard.answers import Answers, ParsedAnswers, Problem, parse_answers
from app.wizard.inputs import BY_NAME, INPUTS, RENAMED


def problem_of(parsed: ParsedAnswers, name: str) -> Problem | None:
    """Return the first problem of a field."""
    return next((each for each in parsed.problems if each.field == name), None)


def test_every_input_is_an_answer() -> None:
    """The table of inputs and the fields of Answers name the same things in the same order."""
    assert [each.name for each in INPUTS] == [
        each.name for each in fields(Answers) if each.name != "unsure"
    ]
    assert set(RENAMED.values()) <= BY_NAME.keys()


def test_typed_values_come_out() -> None:
    """Each kind of input arrives in its type."""
    parsed = parse_answers(
        [
            ("model", "llama-3.3-70b"),
            ("max_model_len", "8K"),
            ("gpu_memory_utilization", "0,92"),
            ("enforce_eager", "true"),
            ("kv_cache_memory_bytes", "20G"),
            ("speculative_config", '{"num_speculative_tokens": 2, "method": "mtp"}'),
        ],
        lang="de",
    )
    answers = parsed.answers
    assert not parsed.problems
    assert not parsed.notices
    assert answers.model == "llama-3.3-70b"
    assert answers.max_model_len == 8192
    assert answers.gpu_memory_utilization == 0.92
    assert answers.enforce_eager is True
    assert answers.kv_cache_memory_bytes == 20 * 2**30
    assert answers.speculative_config == '{"method":"mtp","num_speculative_tokens":2}'


@pytest.mark.parametrize("text", ["0", "1000000000000", "-5"])
def test_lengths_out_of_bounds_name_the_bounds(text: str) -> None:
    """A context of 0 or 10^12 is a problem that carries the limits and keeps the text."""
    parsed = parse_answers([("max_model_len", text)])
    problem = problem_of(parsed, "max_model_len")
    assert problem is not None
    assert problem.code == "out_of_bounds"
    assert dict(problem.numbers) == {"minimum": 1, "maximum": 100_000_000}
    assert parsed.raw["max_model_len"] == text
    assert parsed.answers.max_model_len is None


def test_unknown_names_are_noticed_with_the_nearest_known() -> None:
    """A mistyped name is ignored, and the notice says what was probably meant."""
    notice = parse_answers([("max_model_length", "8")]).notices[0]
    assert (notice.code, notice.field, notice.nearest) == (
        "unknown_name",
        "max_model_length",
        "max_model_len",
    )
    assert parse_answers([("qqqq", "8")]).notices[0].nearest == ""


@pytest.mark.parametrize("key", ["tp", "--tensor-parallel-size", "tensor-parallel-size"])
def test_flags_as_the_command_line_writes_them_are_migrated(key: str) -> None:
    """Short and dashed vLLM flags are read, with a notice of the name they became."""
    parsed = parse_answers([(key, "4")])
    assert parsed.answers.tensor_parallel_size == 4
    assert [(each.code, each.nearest) for each in parsed.notices] == [
        ("renamed", "tensor_parallel_size")
    ]


def test_the_last_of_repeated_names_counts() -> None:
    """A different second value wins and is noticed; the same value twice passes in silence."""
    parsed = parse_answers([("gpu", "a"), ("gpu", "b")])
    assert parsed.answers.gpu == "b"
    assert [each.code for each in parsed.notices] == ["repeated"]
    assert not parse_answers([("gpu", "a"), ("gpu", "a")]).notices


def test_unsure_is_an_answer_only_where_it_is_offered() -> None:
    """`unsure` is kept apart from values; for a field without a default it is just text."""
    parsed = parse_answers([("checkpoint", "unsure"), ("max_num_seqs", "unsure")])
    assert parsed.answers.unsure == {"checkpoint"}
    assert parsed.answers.checkpoint is None
    assert problem_of(parsed, "max_num_seqs") is not None
    assert parsed.answers.with_changes(checkpoint="fp8").unsure == frozenset()


def test_page_keys_and_empty_fields_pass_in_silence() -> None:
    """A form's empty fields are absent, and a page's own keys are none of our business."""
    parsed = parse_answers([("theme", "dark"), ("gpu", " ")], page_keys={"theme"})
    assert parsed.answers == Answers()
    assert not parsed.notices


def test_links_of_another_format_are_noticed() -> None:
    """A link with a format this site does not write is read as far as it goes, and says so."""
    assert not parse_answers([("v", "1")]).notices
    assert parse_answers([("v", "7")]).notices[0].code == "other_format"


def test_a_pasted_config_survives_its_link() -> None:
    """What spec= carries comes back as the same object."""
    spec = pasted.encode('{"model_type":"llama"}', '{"quantization":{}}')
    assert spec is not None
    answers = parse_answers([("spec", spec)]).answers
    assert answers.hf_config == '{"model_type":"llama"}'
    assert answers.hf_quant_config == '{"quantization":{}}'


def test_a_pasted_config_that_is_too_long_has_no_link() -> None:
    """Above 4 kB there is no spec= at all, rather than a cut one."""
    noise = ",".join(f'"{hash((i, 7)) & 0xFFFFFFFFFF:x}":{i}' for i in range(1500))
    assert pasted.encode("{" + noise + "}", None) is None


@pytest.mark.parametrize("text", ["!!", "AAAA", "eJw", "x" * 5000])
def test_a_broken_spec_is_a_problem(text: str) -> None:
    """A damaged spec= is named; nothing is raised."""
    assert problem_of(parse_answers([("spec", text)]), "spec") is not None


def test_a_spec_never_expands_without_bound() -> None:
    """A small value that unpacks to megabytes is refused."""
    import base64  # noqa: PLC0415 - only this test builds one by hand
    import zlib  # noqa: PLC0415

    bomb = base64.urlsafe_b64encode(zlib.compress(b'{"hf_config":{}}' + b" " * 2_000_000)).decode()
    assert len(bomb) < pasted.MAX_SPEC_LENGTH
    problem = problem_of(parse_answers([("spec", bomb)]), "spec")
    assert problem is not None
    assert problem.code == "broken_spec"


@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from([*BY_NAME, "v", "data", "spec"]), st.text(max_size=20)),
            st.one_of(st.text(max_size=40), st.integers().map(str), st.floats().map(str)),
        ),
        max_size=8,
    )
)
def test_no_text_is_an_exception(params: list[tuple[str, str]]) -> None:
    """Whatever the pairs, the answer is answers plus problems that name known fields."""
    parsed = parse_answers(params)
    assert all(each.field in {*BY_NAME, "spec"} for each in parsed.problems)
