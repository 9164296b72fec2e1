"""Every figure that vLLM's own code worked out comes out exactly the same here."""

from collections import Counter
from collections.abc import Iterable

import pytest

from app.core import kv_cache, kv_spec
from app.core.engine_defaults import resolve_engine_args
from tests.core.oracle import OracleCase, cases, differences

BLIND = "blind_cases.json"
FILES = ("oracle_cases.json", "generated_cases.json", "release_cases.json", BLIND)


def _wrong(of: Iterable[OracleCase]) -> dict[str, list[str]]:
    found = {case.name: differences(case) for case in of}
    return {name: texts for name, texts in found.items() if texts}


@pytest.mark.parametrize("file", FILES)
def test_every_answer_is_exact(file: str) -> None:
    """Blocks, block size, bytes, tokens, concurrency, groups and refusals equal vLLM's."""
    compared = [case for case in cases(file) if not case.left_out]
    wrong = _wrong(compared)
    total = Counter(case.family for case in compared)
    exact = Counter(case.family for case in compared if case.name not in wrong)
    print(f"\n{file}: {exact.total()} of {total.total()} exact")  # noqa: T201 - for `pytest -s`
    for family, count in total.most_common():
        print(f"  {exact[family]:>5} of {count:<5} {family}")  # noqa: T201
    assert not wrong, dict(list(wrong.items())[:5])


def test_the_generated_cases_cover_what_the_published_leave_out() -> None:
    """More than a thousand answers of our own asking: families, cards and dtypes beyond the 550."""
    published, own = cases(), cases("generated_cases.json")
    refused = [case for case in own if "reason" in case.expected]
    assert len(own) > 1000
    assert len(refused) > 200
    assert {case.family for case in own} > {case.family for case in published}
    assert {case.request.gpu.slug for case in own} > {case.request.gpu.slug for case in published}


def test_what_is_left_out_of_the_blind_cases_still_differs() -> None:
    """Every case drawn is kept; what is left out has a reason and would not be equal."""
    drawn = cases(BLIND)
    left_out = [case for case in drawn if case.left_out]
    assert len(drawn) > 1000
    assert len(left_out) < len(drawn) * 0.06
    assert all(differences(case) for case in left_out), [case.name for case in left_out]


def test_older_releases_answered_too() -> None:
    """Answers of the older releases' own code, from 0.10.2 on."""
    versions = {case.request.release.version for case in cases("release_cases.json")}
    assert {"0.10.2", "0.11.2", "0.15.1", "0.20.2", "0.25.1", "0.28.0", "0.31.0"} <= versions


def test_the_550_cases_cover_figures_and_refusals() -> None:
    """The published set is whole: 550 answers, 47 of them refusals, none without an expectation."""
    refused = [case for case in cases() if "reason" in case.expected]
    assert (len(cases()), len(refused)) == (550, 47)
    assert all(case.expected for case in cases())


def test_a_broken_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: windows that need no extra block make every case with windows wrong."""
    windowed = [case for case in cases() if any("window" in kind for kind in _kinds(case))]
    honest = kv_spec.KvSpec.blocks_per_request

    def broken(spec: kv_spec.KvSpec, length: kv_spec.RequestLength) -> int:
        return honest(spec, length) - ("window" in spec.kind)

    kv_cache._shape.cache_clear()
    monkeypatch.setattr(kv_spec.KvSpec, "blocks_per_request", broken)
    wrong = _wrong(windowed)
    monkeypatch.undo()
    kv_cache._shape.cache_clear()
    assert len(wrong) == len(windowed) > 90


def _kinds(case: OracleCase) -> set[str]:
    if "reason" in case.expected:
        return set()
    resolved = resolve_engine_args(case.request)
    return {group.kind for group in kv_cache.cache_shape(case.request, resolved).groups}
