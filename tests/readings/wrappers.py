"""How a log gets from a server into a paste: what stands around vLLM's own records."""

import json
from collections.abc import Callable
from textwrap import wrap
from typing import Final

_WIDTH: Final = 118


def _each(prefix: Callable[[int], str]) -> Callable[[str], str]:
    def wrapped(text: str) -> str:
        return "\n".join(prefix(index) + line for index, line in enumerate(text.split("\n")))

    return wrapped


def _clock(index: int) -> str:
    return f"09:{index // 60 % 60:02d}:{index % 60:02d}"


def _ansi(escape: str) -> Callable[[str], str]:
    def wrapped(text: str) -> str:
        lines = []
        for line in text.split("\n"):
            tag, bracket, rest = line.partition(") ")
            coloured = f"{escape}[0;36m{tag}){escape}[0;0m {rest}" if bracket else line
            lines.append(coloured.replace("WARNING", f"{escape}[33mWARNING{escape}[0m"))
        return "\n".join(lines)

    return wrapped


def _with_progress(text: str) -> str:
    bars = "".join(
        f"\rCapturing CUDA graphs: {share:3d}%|\u2588\u2588   | {share}/100 [00:01<00:01, 9.1it/s]"
        for share in range(0, 101, 20)
    )
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"{bars}\r{line}" for line in rest)])


def _hard_wrapped(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        lines += [line[at : at + _WIDTH] for at in range(0, max(len(line), 1), _WIDTH)]
    return "\n".join(lines)


def _word_wrapped(text: str) -> str:
    """As mail programs do."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += wrap(line, _WIDTH, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def _json_lines(text: str) -> str:
    return "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr"}, ensure_ascii=False)
        for line in text.split("\n")
    )


def _among_others(text: str) -> str:
    lines = []
    for index, line in enumerate(text.split("\n")):
        lines.append(f"inference-1  | {line}")
        lines.append(f"gateway-1    | {_clock(index)} GET /healthz 200 {index} ms")
    return "\n".join(lines)


def _traffic(text: str) -> str:
    noise = '(APIServer pid=1) INFO:     10.0.0.7:4{:04d} - "GET /health HTTP/1.1" 200 OK'
    return "\n".join(
        f"{line}\n{noise.format(index)}" for index, line in enumerate(text.split("\n"))
    )


WRAPPERS: Final[dict[str, Callable[[str], str]]] = {
    "plain": lambda text: text,
    "windows line ends": lambda text: text.replace("\n", "\r\n"),
    "docker time stamps": _each(lambda index: f"2026-06-14T{_clock(index)}.123456789Z "),
    "docker desktop": _each(lambda index: f"2026-06-14 {_clock(index)}.710 | "),
    "compose": _each(lambda _: "our-vllm-1   | "),
    "compose in brackets": _each(lambda _: "[our-vllm]                 | "),
    "compose among others": _among_others,
    "kubectl --prefix": _each(lambda _: "[pod/our-vllm-7d9c5b/server] "),
    "container runtime": _each(lambda index: f"2026-06-14T{_clock(index)}.12Z stderr F "),
    "journald": _each(lambda index: f"Jun 14 {_clock(index)} node7 vllm[{4000}]: "),
    "SageMaker": _each(lambda _: "INFO  PyProcess - W-210-model-stdout: "),
    "Ray": _each(lambda _: "(ServeReplica:our:LLM pid=77, ip=10.1.2.3) "),
    "colours": _ansi("\x1b"),
    "colours spelled out": _ansi("#033"),
    "colours without escape": _ansi(""),
    "progress bars": _with_progress,
    "JSON lines": _json_lines,
    "quoted": _each(lambda _: "> "),
    "commented out": _each(lambda _: "# "),
    "found by an editor": _each(lambda index: f"  Line {index + 1}: "),
    "escaped underscores": lambda text: text.replace("_", "\\_"),
    "hard spaces": lambda text: text.replace(" ", "\u00a0"),
    "HTML entities": lambda text: text.replace("'", "&#39;").replace(">", "&gt;"),
    "terminal of fixed width": _hard_wrapped,
    "wrapped at words": _word_wrapped,
    "among access logs": _traffic,
    "byte order mark": lambda text: "\ufeff" + text,
}
