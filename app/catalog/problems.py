"""What is wrong in a catalogue file, said so that its author can mend it."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

File = TypeVar("File", bound=BaseModel)
Location = tuple[int | str, ...]
RowName = Callable[[dict[str, Any], Location], str]

_WANTED_TYPES = {
    "bool_type": "true or false",
    "dict_type": "a table of names and values",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a table with named fields",
    "string_type": "text in quotes",
}
_LIMITS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_SHOWN = 60


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend: in which file, which row of it, which field, and what to do."""

    file: str
    row: str
    field: str
    message: str

    def __str__(self) -> str:
        """One line, from the outside inwards."""
        return f"{self.file}: {self.row}, field `{self.field}`: {self.message}"


def misnamed(path: Path, slug: str, field: str = "slug") -> list[Problem]:
    """Say so where a file does not have the name of what it describes."""
    if path.stem == slug:
        return []
    message = f"is {slug!r}, but the file is {path.name}. Make them agree."
    return [Problem(file_label(path), slug, field, message)]


class CatalogueError(ValueError):
    """The catalogue cannot be used as it is. `problems` lists all that was found, by file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems in the order of their files."""
        self.problems = tuple(sorted(problems))
        count = f"{len(self.problems)} problem" + ("" if len(self.problems) == 1 else "s")
        super().__init__(f"{count} in the catalogue:\n" + "\n".join(map(str, self.problems)))


def file_label(path: Path) -> str:
    """Name a file by its folder and name, as the how-to pages do: `gpus/l4.toml`."""
    return f"{path.parent.name}/{path.name}"


def whole_file(document: dict[str, Any], _location: Location) -> str:
    """Name the row of a file that describes one thing: its slug."""
    slug = document.get("slug")
    return slug if isinstance(slug, str) and slug else "the whole file"


def read_file(
    path: Path, schema: type[File], problems: list[Problem], row_name: RowName = whole_file
) -> File | None:
    """Read a JSON or TOML file against its schema.

    Returns None when something is wrong; what it is was then added to `problems`.
    """
    try:
        document = _parse(path)
    except _SyntaxProblemError as error:
        problems.append(Problem(file_label(path), error.row, "(syntax)", error.message))
        return None
    try:
        return schema.model_validate(document, strict=True)
    except ValidationError as error:
        known = field_names(schema)
        problems.extend(
            Problem(
                file_label(path),
                row_name(document, detail["loc"]),
                ".".join(str(part) for part in detail["loc"]) or "(all of them)",
                _message(detail, known),
            )
            for detail in error.errors()
        )
        return None


class _SyntaxProblemError(ValueError):
    """A file that is not JSON or TOML at all, with the line to look at."""

    def __init__(self, row: str, message: str) -> None:
        super().__init__(message)
        self.row = row
        self.message = message


def _parse(path: Path) -> dict[str, Any]:
    """Read a file into a dictionary; raises _SyntaxProblemError."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except UnicodeDecodeError as error:
        where = f"byte {error.start}"
        raise _SyntaxProblemError(where, "is not UTF-8; save the file as UTF-8.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}"
        raise _SyntaxProblemError(
            where, f"is not JSON: {error.msg} at column {error.colno}."
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _SyntaxProblemError("the whole file", f"is not TOML: {error}.") from error
    if not isinstance(document, dict):
        raise _SyntaxProblemError("the whole file", "must be an object in braces { }, and is not.")
    return document


def field_names(schema: type[BaseModel]) -> set[str]:
    """Collect the field names of a schema and of the tables in it, for suggestions."""
    names: set[str] = set()
    for definition in [schema.model_json_schema(), *_definitions(schema)]:
        names.update(definition.get("properties", {}))
    return names


def _definitions(schema: type[BaseModel]) -> Iterable[dict[str, Any]]:
    definitions: dict[str, dict[str, Any]] = schema.model_json_schema().get("$defs", {})
    return definitions.values()


def _message(detail: ErrorDetails, known: set[str]) -> str:
    """Say in words what pydantic found, and what to do about it."""
    kind, context, value = detail["type"], detail.get("ctx", {}), _shown(detail["input"])
    if kind == "missing":
        return "is missing. Add it."
    if kind == "extra_forbidden":
        name = str(detail["loc"][-1])
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return f"is no field of this file. Remove it or correct its name.{hint}"
    if kind == "literal_error":
        return f"is {value}. Use one of {context['expected']}."
    if kind in _WANTED_TYPES:
        return f"is {value}. Write {_WANTED_TYPES[kind]}."
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"is {value}. It must be {words} {context[limit]}."
    if kind == "string_pattern_mismatch":
        return f"is {value}. It must match the pattern {context['pattern']}."
    if kind in {"string_too_short", "too_short"}:
        return "is empty. Fill it in."
    if kind == "value_error":
        return f"is {value}. {context['error']}"
    return f"is {value}. {detail['msg']}."


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
