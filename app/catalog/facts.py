"""A fact: a value, how sure it is, and where it was read."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Value = TypeVar("Value")
Sureness = Literal["observed", "published", "database", "secondary", "recalled"]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.\-]*$", max_length=80)]
Text = Annotated[str, Field(min_length=1, max_length=400)]


class StrictModel(BaseModel):
    """Base of every file's schema: no unknown field, no silent conversion, not changed later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Fact(StrictModel, Generic[Value]):
    """A value with its source.

    `sure`: `observed` was read in the log of a running machine, `published` by the maker,
    `database` in a collection of data sheets, `secondary` on somebody's page, `recalled` is
    common knowledge that nobody re-read for this catalogue.
    """

    value: Value
    sure: Sureness
    source: Text
