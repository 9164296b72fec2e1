"""Flags of a pasted command: `vllm serve …`, `docker run … vllm-openai …`, compose and k8s lists.

Reads POSIX, PowerShell and cmd quoting and line continuations, typographic quotes and dashes that
mail programs put in, YAML and JSON lists, and `LLM(…)` calls in Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.readings.command_block import Block
from app.readings.engine_flags import canonical_name, engine_args_of, is_flag, is_object
from app.readings.observation import ArgValue
from app.readings.python_literal import read_entries, scalar

ENVIRONMENT: Final = (
    "VLLM_USE_V1", "VLLM_USE_V2_MODEL_RUNNER", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS",
    "VLLM_ENABLE_STARTUP_PLAN", "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "VLLM_ATTENTION_BACKEND",
    "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE", "VLLM_USE_FLASHINFER_SAMPLER", "VLLM_KV_CACHE_LAYOUT",
    "VLLM_MLA_DISABLE", "VLLM_PP_LAYER_PARTITION", "VLLM_BATCH_INVARIANT",
    "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "PYTORCH_CUDA_ALLOC_CONF",
    "CUDA_VISIBLE_DEVICES",
)  # fmt: skip

_MAX_JSON_LENGTH: Final = 4_000
_MAX_DOTS: Final = 5
_MAX_UNPACKING: Final = 2
_TOKEN = re.compile(r"""(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'|\\.|[^\s"'\\])+|["']""", re.DOTALL)
_QUOTED = re.compile(r""""([^"\\]*(?:\\.[^"\\]*)*)"|'([^']*)'|\\([\s\S])""")
_LIST_ITEM = re.compile(r"""[\[,]{0,2}((?:"[^"]*"|'[^']*'))[\],]{0,3}""")
# A dash is what a word processor makes of two hyphens.
_FLAG = re.compile(r"(?:--?|[\u2013\u2014])([A-Za-z][\w.\-]{0,80})(?:=([\s\S]*))?")
_LOG_BEGINS = re.compile(
    r"(?:INFO|WARNING|ERROR|DEBUG):? {1,4}(?:[0-9]{2}-[0-9]{2} |\[)"
    r"|\((?:APIServer|EngineCore|Worker|VllmWorker|Ray)\w{0,40} pid="
)
_SEPARATORS: Final = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "2>&1", "2>", "<"})
_CONTINUATIONS: Final = frozenset({"", "\\", "^", "-"})
_SWITCH_PREFIXES: Final = (
    "enable-",
    "disable-",
    "no-",
    "trust-",
    "enforce-",
    "async-",
    "use-",
    "rm",
)
_OPTIMIZATION = re.compile(r"O([0-9])")
_IMAGE = re.compile(
    r"vllm-openai:v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:\.?(?:rc|post|dev)[0-9]{1,4})?)"
)
_ASSIGNED = r"""["']?\s{0,4}(?:=|:|\n[ ]{0,40}value:)\s{0,4}["']?([^\s"',\\]{1,100})"""
_FIRST_ARGUMENT = re.compile(r"\s{0,40}[\"']([^\"'\n]{1,300})[\"']")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: engine arguments under vLLM's names, the variables that matter, where it ends.

    image_version  release in the image's tag, None for `latest` and the like
    end            offset behind the last token read
    """

    engine_args: Mapping[str, ArgValue]
    environment: Mapping[str, str]
    image_version: str | None
    end: int


def read_command(block: Block) -> Command | None:
    """Read a block of command lines; None where it sets nothing that bears on memory."""
    if block.call_begin is not None:
        return _read_call(block, block.call_begin)
    tokens, length = _tokens(block.text)
    entries = _entries(tokens)
    image = _IMAGE.search(block.text)
    environment = dict(_environment(block.text[:length]))
    engine_args = engine_args_of(entries)
    if not engine_args and not environment and image is None:
        return None
    return Command(engine_args, environment, image[1] if image else None, block.begin + length)


def _read_call(block: Block, begin: int) -> Command | None:
    """Read `LLM("model", tensor_parallel_size=2, …)`."""
    entries, end = read_entries(block.text, begin, len(block.text))
    first = _FIRST_ARGUMENT.match(block.text, begin)
    if first:
        entries.setdefault("model", first[1])
    engine_args = engine_args_of(entries)
    if "model" not in engine_args:
        return None
    return Command(engine_args, {}, None, block.begin + end)


def _tokens(text: str, unpacking: int = 0) -> tuple[list[str], int]:
    """Cut a command into words as a shell does; also how much of the text is the command."""
    tokens: list[str] = []
    end = len(text)
    for match in _TOKEN.finditer(text):
        raw = match[0].strip("`")
        if _LOG_BEGINS.match(text, match.start()):
            end = match.start()
            break
        if raw in _CONTINUATIONS:
            continue
        item = _LIST_ITEM.fullmatch(raw)
        word = _unquoted(item[1] if item else raw)
        if (" --" in word or "vllm serve " in word) and unpacking < _MAX_UNPACKING:
            tokens.extend(_tokens(word, unpacking + 1)[0])
        else:
            tokens.append(word)
    return tokens, end


def _unquoted(raw: str) -> str:
    if '"' not in raw and "'" not in raw and "\\" not in raw:
        return raw
    return _QUOTED.sub(_unquote, raw)


def _unquote(match: re.Match[str]) -> str:
    double, single, escaped = match.groups()
    if double is not None:
        return double.replace('\\"', '"').replace("\\\\", "\\")
    return single if single is not None else escaped


def _entries(tokens: list[str]) -> dict[str, ArgValue]:
    """Flags and their values; of several settings of one flag the last counts, as in argparse."""
    entries: dict[str, ArgValue] = {}
    model: str | None = None
    serving = False
    index = 0
    while index < len(tokens):
        word = tokens[index]
        index += 1
        if word in _SEPARATORS:
            serving = False
            continue
        flag = _FLAG.fullmatch(word)
        if flag is None:
            if word == "serve" and index > 1 and tokens[index - 2].endswith("vllm"):
                serving = True
            elif serving and model is None and _is_value(word):
                model = word
            continue
        value = flag[2]
        if value is None and index < len(tokens) and _takes_value(flag[1], tokens[index]):
            value = tokens[index]
            index += 1
        _set(entries, flag[1], value)
    if model is not None:
        entries["model"] = model
    return {name: value for name, value in entries.items() if not _is_variable(value)}


def _is_value(token: str) -> bool:
    return not _FLAG.fullmatch(token) and token not in _SEPARATORS


def _is_variable(value: ArgValue) -> bool:
    return isinstance(value, str) and value.startswith(("$", "{{", "%"))


def _takes_value(flag: str, following: str) -> bool:
    name = canonical_name(flag.partition(".")[0])
    if not _is_value(following):
        return False
    if name is None:
        return not flag.startswith(_SWITCH_PREFIXES)
    return not is_flag(name) or isinstance(scalar(following), bool)


def _set(entries: dict[str, ArgValue], flag: str, value: str | None) -> None:
    optimization = _OPTIMIZATION.fullmatch(flag)
    if optimization:
        entries["optimization_level"] = int(optimization[1])
        return
    head, *dotted = flag.split(".", _MAX_DOTS)
    name = canonical_name(head)
    if name is None and head.startswith("no-"):
        name = canonical_name(head.removeprefix("no-"))
        if name is not None and is_flag(name):
            entries[name] = False
        return
    if name is None:
        return
    if is_flag(name):
        entries[name] = scalar(value) if value is not None else True
    elif is_object(name):
        _set_object(entries, name, dotted, value or "")
    elif value is not None:
        entries[name] = value


def _set_object(entries: dict[str, ArgValue], name: str, dotted: list[str], value: str) -> None:
    if not dotted:
        parsed = _json(value)
        if parsed is not None:
            entries[name] = parsed
        return
    target = entries.setdefault(name, {})
    for part in dotted[:-1]:
        if not isinstance(target, dict):
            return
        target = target.setdefault(part.replace("-", "_"), {})
    if isinstance(target, dict):
        target[dotted[-1].replace("-", "_")] = scalar(value)


def _json(text: str) -> ArgValue:
    """A JSON object; also where PowerShell left its quotes escaped, or `image=2` as of old."""
    if len(text) > _MAX_JSON_LENGTH:
        return None
    for candidate in (text, text.replace('\\"', '"')):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    pairs = [part.partition("=") for part in text.split(",")]
    if all(name.isidentifier() and number for name, _, number in pairs):
        return {name: scalar(number) for name, _, number in pairs}
    return None


def _environment(text: str) -> Iterator[tuple[str, str]]:
    for name in ENVIRONMENT:
        if name not in text:
            continue
        match = re.search(rf"\b{name}\b{_ASSIGNED}", text)
        if match:
            yield name, match[1]
