"""Write the JSON Schemas of the catalogue's files, for editors and for people.

    python -m app.tools.catalogue_schema [--data data]

They are made from the schemas the loader itself uses, so they cannot disagree with it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pydantic import BaseModel

from app.catalog.gpus import GpuFile
from app.catalog.mig import MigFile
from app.catalog.models import ModelFile
from app.catalog.servers import ServerFile
from app.catalog.vendors import VendorFile

SCHEMAS: dict[str, type[BaseModel]] = {
    "gpu": GpuFile,
    "mig": MigFile,
    "model": ModelFile,
    "server": ServerFile,
    "vendor": VendorFile,
}


def schema_text(name: str) -> str:
    """JSON Schema of one kind of file, as it is written to `data/schema/`."""
    return json.dumps(SCHEMAS[name].model_json_schema(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write `data/schema/NAME.schema.json` for every kind of file."""
    parser = argparse.ArgumentParser(description="Write the JSON Schemas of the catalogue.")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the catalogue's folder")
    folder = parser.parse_args(arguments).data / "schema"
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCHEMAS:
        (folder / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")
    print(f"{len(SCHEMAS)} schemas written to {folder}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
