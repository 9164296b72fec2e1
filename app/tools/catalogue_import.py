"""Import collected facts about cards and models into the catalogue's own files.

    python -m app.tools.catalogue_import FOLDER [--data data] [--only SLUG …]

FOLDER holds `gpus.json` and `models/*.json` as somebody collected them. What the collection lacks
(names, aliases, KV schemes, layer selections) is taken from `data/import/additions.toml`, where
each fact has its source. Files of slugs that FOLDER does not have are left alone; run it again
whenever either side changes, and look at the difference before committing it.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from app.catalog.catalogue import load_catalogue
from app.catalog.problems import CatalogueError
from app.tools.catalogue_gpus import import_gpus
from app.tools.catalogue_models import import_models


def main(arguments: list[str] | None = None) -> int:
    """Run the import; returns 1 when the catalogue it leaves behind has problems."""
    parser = argparse.ArgumentParser(description="Import cards and models into the catalogue.")
    parser.add_argument("folder", type=Path, help="folder with gpus.json and models/*.json")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the catalogue's folder")
    parser.add_argument("--only", nargs="*", metavar="SLUG", help="import these models only")
    options = parser.parse_args(arguments)
    text = (options.data / "import" / "additions.toml").read_text(encoding="utf-8")
    additions = tomllib.loads(text)
    cards = import_gpus(options.folder / "gpus.json", options.data, additions["gpus"])
    models = import_models(options.folder / "models", options.data, additions, options.only)
    print(f"{cards} cards, {models.models} models, {models.checkpoints} checkpoints written.")
    for line in models.remarks:
        print(line)
    try:
        load_catalogue(options.data)
    except CatalogueError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
