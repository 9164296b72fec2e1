"""README.md says what the code does."""

from app.main import ROOT
from app.settings import Settings
from app.tools.readme import settings_table, with_table

README = ROOT / "README.md"


def test_settings_table_is_current() -> None:
    """The table of settings in README.md is the one generated from app/settings.py."""
    text = README.read_text(encoding="utf-8")
    assert with_table(text, settings_table()) == text, "run `make readme`"


def test_every_setting_is_explained() -> None:
    """Each field has a description that is a sentence, and stands in the table."""
    table = settings_table()
    for name, field in Settings.model_fields.items():
        assert (field.description or "").endswith("."), name
        assert f"`SIZING_{name.upper()}`" in table
