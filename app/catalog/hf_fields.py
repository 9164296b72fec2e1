"""Fields of a config.json, read with bounds: whatever is wrong is named, nothing else is raised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from app.core.reasons import Number

MAX_INTEGER = 2**31
MAX_LAYERS = 1024
MAX_LIST = 4096
MAX_TEXT = 2048
SHOWN_TEXT = 120
NESTED_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")


class ConfigError(ValueError):
    """A config that cannot be read.

    `code` is one of `config_not_an_object`, `config_key_missing`, `config_value_invalid`,
    `config_too_large`, `architecture_unknown`, `quantization_not_supported`; `numbers` are
    the facts of the message (key, value as given, bounds).
    """

    def __init__(self, code: str, numbers: tuple[tuple[str, Number], ...] = ()) -> None:
        """Keep code and facts for the message of the page."""
        super().__init__(code, numbers)
        self.code = code
        self.numbers = numbers


def shown(value: object) -> str:
    """A value as given, cut to what a message can hold."""
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER.bit_length() * 8:
        return "an integer of more than 75 digits"
    if not isinstance(value, str | int | float | bool) and value is not None:
        return type(value).__name__
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_TEXT else text[:SHOWN_TEXT] + "…"


@dataclass(frozen=True, slots=True)
class Fields:
    """One object of a config; `path` says where it lies (`text_config.`)."""

    values: Mapping[str, object]
    path: str = ""

    @staticmethod
    def of(config: object, path: str = "") -> Fields:
        """Wrap a mapping; anything else is `config_not_an_object`."""
        if not isinstance(config, Mapping):
            raise ConfigError("config_not_an_object", (("key", path or "."),))
        return Fields(config, path)

    def has(self, key: str) -> bool:
        """True where the key is present and not null."""
        return self.values.get(key) is not None

    def integer(
        self, key: str, default: int | None = None, *, low: int = 0, high: int = MAX_INTEGER
    ) -> int:
        """Integer within bounds, an integral float too. Missing without a default is an error."""
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise ConfigError("config_key_missing", (("key", self.path + key),))
            return default
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.invalid(key, value, low, high)
        return value

    def first_integer(
        self, *keys: str, default: int | None = None, low: int = 0, high: int = MAX_INTEGER
    ) -> int:
        """Integer under the first of several names that is present."""
        for key in keys:
            if self.has(key):
                return self.integer(key, low=low, high=high)
        return self.integer(keys[0], default, low=low, high=high)

    def number(
        self, key: str, default: float, *, low: float = 0.0, high: float = float(MAX_INTEGER)
    ) -> float:
        """Finite number within bounds."""
        value = self.values.get(key)
        if value is None:
            return default
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            raise self.invalid(key, value, low, high)
        return float(value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Boolean."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.invalid(key, value)
        return value

    def text(self, key: str, default: str = "") -> str:
        """Short text."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise self.invalid(key, value)
        return value

    def integers(self, key: str, *, high: int = MAX_INTEGER) -> tuple[int, ...]:
        """List of integers from 0 to `high`; empty where absent."""
        items = self._list(key)
        return tuple(Fields({key: item}, self.path).integer(key, high=high) for item in items)

    def texts(self, key: str) -> tuple[str, ...]:
        """List of short texts; empty where absent."""
        items = self._list(key)
        return tuple(Fields({key: item}, self.path).text(key) for item in items)

    def block(self, key: str) -> Fields:
        """Nested object; empty where absent."""
        value = self.values.get(key)
        if value is None:
            return Fields({}, f"{self.path}{key}.")
        if not isinstance(value, Mapping):
            raise self.invalid(key, value)
        return Fields(value, f"{self.path}{key}.")

    def blocks(self, key: str) -> tuple[Fields, ...]:
        """List of objects; empty where absent."""
        return tuple(
            Fields.of(item, f"{self.path}{key}[{index}].")
            for index, item in enumerate(self._list(key))
        )

    def _list(self, key: str) -> list[object]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise self.invalid(key, value)
        if len(value) > MAX_LIST:
            raise ConfigError(
                "config_too_large",
                (("key", self.path + key), ("entries", len(value)), ("largest", MAX_LIST)),
            )
        return list(value)

    def invalid(self, key: str, value: object, *bounds: float) -> ConfigError:
        """Build the error for a value of the wrong kind or out of bounds."""
        facts: tuple[tuple[str, Number], ...] = (
            ("key", self.path + key),
            ("value", shown(value)),
        )
        return ConfigError(
            "config_value_invalid",
            facts + tuple(zip(("smallest", "largest"), bounds, strict=False)),
        )


def text_fields(config: Fields) -> Fields:
    """Return the part of a config that describes the language model, however deep it is nested."""
    for _ in NESTED_TEXT:
        nested = next((key for key in NESTED_TEXT if config.has(key)), None)
        if nested is None:
            break
        config = config.block(nested)
    return config
