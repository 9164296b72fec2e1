"""One wording of a kind of line, as vLLM prints it, with numbers of our own."""

from dataclasses import dataclass, field
from string import Formatter

from app.readings.observation import Value
from tests.readings.releases import RELEASES, within


@dataclass(frozen=True)
class Row:
    """One wording and the releases that print it; `values` are samples for its placeholders.

    `row` is the row of the catalogue of log lines that the kind stands for (1 to 37, E1 to E9), or
    a name of ours for lines beyond it. Placeholders that begin with an underscore are printed but
    not read; the others are what the reader must return.
    """

    row: str
    kind: str
    since: str | None
    until: str | None
    text: str
    values: dict[str, Value] = field(default_factory=dict)
    level: str = "INFO"
    file: str = "gpu_worker.py"

    def printed(self, **values: Value) -> str:
        """The line with these values in place of the samples."""
        return self.text.format(**{**self.values, **values})

    def expected(self, **values: Value) -> dict[str, Value]:
        """What the reader must return: each value as precise as it was printed."""
        merged = {**self.values, **values}
        read: dict[str, Value] = {}
        for _, name, spec, _ in Formatter().parse(self.text):
            if name and not name.startswith("_"):
                value = merged[name]
                text = format(value, spec or "").replace(",", "")
                read[name] = value if isinstance(value, str) else type(value)(float(text))
        return read

    @property
    def releases(self) -> tuple[str, ...]:
        """Known releases that print it."""
        return tuple(version for version in RELEASES if within(version, self.since, self.until))
