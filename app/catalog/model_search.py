"""Finding a model by what people type: slug, Hugging Face id, part of a name, a misspelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from app.catalog.checkpoints import CatalogueCheckpoint
from app.catalog.models import CatalogueModel

_WORD = re.compile(r"[0-9]+(?:\.[0-9]+)*|[a-z]+")
_NO_MATCH = 9
_NEAR = 0.6
MAX_QUERY = 200
MAX_NAME_WORDS = 10


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model by one of its names; `checkpoint` when the name was that of another repository."""

    model: CatalogueModel
    checkpoint: CatalogueCheckpoint | None = None


def find_model(models: Mapping[str, CatalogueModel], name: str) -> FoundModel | None:
    """Find the model called `name`: slug or Hugging Face id, in any case; None when there is none.

    The id of a checkpoint finds its model too, and says which checkpoint was meant.
    """
    wanted = name.strip().casefold()
    if wanted in models:
        return FoundModel(models[wanted])
    for model in models.values():
        if model.hf_id.casefold() == wanted:
            return FoundModel(model)
        for checkpoint in model.checkpoints:
            if checkpoint.hf_id.casefold() == wanted:
                return FoundModel(model, checkpoint)
    return None


def nearest_names(known: Iterable[str], wrong: str, count: int = 3) -> tuple[str, ...]:
    """Suggest the known names most like a wrong one, best first; none when nothing is near.

    A name that only begins as typed is nearer than one that merely looks alike: `h100` means
    `h100-pcie`, not `h200`.
    """
    folded = {name.casefold(): name for name in known}
    text = wrong.strip().casefold()[:MAX_QUERY]
    begun = sorted(name for name in folded if text and name.startswith(f"{text}-"))
    alike = difflib.get_close_matches(text, folded, n=count, cutoff=_NEAR)
    return tuple(folded[name] for name in dict.fromkeys([*begun, *alike]))[:count]


def nearest_models(
    models: Mapping[str, CatalogueModel], wrong: str, count: int = 3
) -> tuple[CatalogueModel, ...]:
    """Suggest models for a name that none has: by the words it begins with, else by its spelling.

    Dates, tunings and formats stand at the end of a name, so they are left out first.
    """
    name = wrong.rpartition("/")[2]
    words = name.split("-")[:MAX_NAME_WORDS]
    for kept in range(len(words), 1, -1):
        by_words = search_models(models, "-".join(words[:kept]), count)
        if by_words:
            return by_words
    names = {model.slug: model for model in models.values()}
    names.update({model.hf_id.rpartition("/")[2].casefold(): model for model in models.values()})
    near = nearest_names(names, name, 2 * count)
    return tuple(dict.fromkeys(names[each] for each in near))[:count]


def search_models(
    models: Mapping[str, CatalogueModel], query: str, limit: int = 10
) -> tuple[CatalogueModel, ...]:
    """Rank the models for a text typed so far; all of them, by name, for an empty one.

    A model whose name or slug starts with the text comes before one that only has all of its
    words (each as the start of a word, letters and digits apart: `llama33 70` finds Llama 3.3 70B),
    and that before one which has them only in the id of a checkpoint.
    """
    text = " ".join(query.casefold().split())[:MAX_QUERY]
    ranked = sorted(
        (_rank(model, text), _natural(model.name), slug) for slug, model in models.items()
    )
    return tuple(models[slug] for rank, _, slug in ranked if rank < _NO_MATCH)[:limit]


def _natural(name: str) -> tuple[tuple[float, str], ...]:
    """Sort key in which 8B comes before 70B: numbers by value, before words."""
    words = _WORD.findall(name.casefold())
    return tuple(
        (float(".".join(word.split(".")[:2])), "") if word[0].isdigit() else (inf, word)
        for word in words
    )


def _rank(model: CatalogueModel, text: str) -> int:
    own = [model.slug, model.name.casefold(), model.hf_id.casefold()]
    own += [alias.casefold() for alias in model.row.aliases]
    if text in own:
        return 0
    if any(name.startswith(text) for name in (*own, own[2].rpartition("/")[2])):
        return 1
    words = _WORD.findall(text)
    if not words:
        return _NO_MATCH
    if _has_all(words, " ".join((*own, model.row.maker.casefold()))):
        return 2
    others = " ".join(checkpoint.hf_id.casefold() for checkpoint in model.checkpoints)
    return 3 if _has_all(words, others) else _NO_MATCH


def _has_all(words: list[str], text: str) -> bool:
    """Whether each word starts a word of the text, or runs of digits do (`33` in `3.3`)."""
    present = set(_WORD.findall(text))
    present |= {word.replace(".", "") for word in present}
    return all(any(each.startswith(word) for each in present) for word in words)
