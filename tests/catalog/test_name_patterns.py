"""Patterns of ignore lists: as `re.match` finds them, in time that no pattern can blow up."""

import random
import re
from itertools import product

import pytest

from app.catalog.hf_fields import ConfigError
from app.catalog.name_patterns import DEEPEST_GROUP, LARGEST_PATTERN, NamePattern
from tests.cpu_time import cpu_seconds

NAMES = ["".join(letters) for size in range(6) for letters in product("ab.", repeat=size)]


def random_pattern(chance: random.Random, depth: int = 0) -> str:
    """Build a pattern of the grammar that the module says it knows."""
    kinds = ["plain", "plain", "any", "set", "repeat", "lazy", "anchor"]
    kinds += ["group", "either"] if depth < 2 else []
    parts = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(kinds)
        inner = chance.choice(["a", "b", r"\.", ".", "[ab]", r"\w"])
        if kind == "group":
            inner = f"({chance.choice(['', '?:'])}{random_pattern(chance, depth + 1)})"
        elif kind == "either":
            one, other = random_pattern(chance, depth + 1), random_pattern(chance, depth + 1)
            inner = f"({one}|{other})"
        repeated = kind in {"repeat", "lazy"} or (kind in {"group", "either"} and not depth)
        sign = chance.choice("*+?") if repeated else ""
        parts.append(chance.choice("^$") if kind == "anchor" else inner + sign)
        parts.append("?" if kind == "lazy" else "")
    return "".join(parts)


def test_it_matches_what_the_library_matches() -> None:
    """2,000 patterns from a fixed seed, on names of up to five characters."""
    chance = random.Random(20260802)  # noqa: S311 - test data
    matched = 0
    for _ in range(2000):
        text = random_pattern(chance)
        ours, library = NamePattern(text), re.compile(text)
        for name in chance.sample(NAMES, 40):
            expected = library.match(name) is not None
            assert ours.matches(name) == expected, (text, name)
            matched += expected
    assert 10_000 < matched < 70_000


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (".*lm_head", "lm_head", "model.norm"),
        (".*self_attn.*", "model.layers.3.self_attn.q_proj", "model.layers.3.mlp.up_proj"),
        (
            r"model\.layers\.\d+\.mlp\.gate$",
            "model.layers.12.mlp.gate",
            "model.layers.1.mlp.gate_p",
        ),
        ("visual.*", "visual.blocks.0.attn.qkv", "model.visual.blocks.0"),
        (r".*layers\.(0|1|46)\.mlp", "model.layers.46.mlp.up_proj", "model.layers.4.mlp.up_proj"),
        (r"[a-z_.]+[0-3]\.mlp", "model.layers.2.mlp", "model.layers.4.mlp"),
    ],
)
def test_patterns_of_published_files(pattern: str, matching: str, other: str) -> None:
    """What quantisation tools write is matched from the start of a name only."""
    assert NamePattern(pattern).matches(matching)
    assert not NamePattern(pattern).matches(other)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)b", "(?<!a)b", "(?i)a", r"(a)\1", "a{2}", "[^a]", r"[\d]", r"\s", r"\bx"),
        *("(", "a)", "[", "[]", "*a", "a**", "a*+", "a++", "a*??", "\\", "(?:", "(?P<n>a)"),
        *("ü", "a" * (LARGEST_PATTERN + 1), "(" * (DEEPEST_GROUP + 1) + ")" * (DEEPEST_GROUP + 1)),
    ],
)
def test_what_it_does_not_know_is_refused_by_name(pattern: str) -> None:
    """Unknown constructs, broken and oversized patterns end in one named error."""
    with pytest.raises(ConfigError) as caught:
        NamePattern(pattern)
    assert caught.value.code == "quantization_pattern_unknown"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a+)+$", "(.*)*(.*)*x", "((a?)*)*b"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Patterns that stop a backtracking matcher for ever are done at once."""
    name = "a" * 2000 + "c"
    assert not NamePattern(pattern).matches(name)
    assert cpu_seconds(lambda: NamePattern(pattern).matches(name)) < 1
