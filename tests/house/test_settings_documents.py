"""The generated files say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from ulak.settings import Settings, load
from ulak.settings.document import default_toml, reference
from ulak.settings.key import keys

ROOT = Path(__file__).parents[2]
STALE = "is stale; run `make docs`"


def test_default_toml_is_fresh():
    assert (ROOT / "ulak.default.toml").read_text(encoding="utf-8") == default_toml(), f"ulak.default.toml {STALE}"


def test_the_settings_page_is_fresh():
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert page == reference(), f"docs/reference/settings.md {STALE}"


def test_every_setting_is_documented():
    page, file = reference(), default_toml()
    for name, key in keys(Settings).items():
        assert f"`{name}`" in page
        assert f"\n#{name.rpartition('.')[2]} = " in file
        assert key.field.description, f"{name} has no description"
        assert key.field.description.endswith("."), f"the description of {name} is no sentence"


def test_every_number_has_bounds():
    for name, key in keys(Settings).items():
        if key.field.annotation in (int, float):
            limits = {type(rule).__name__ for rule in key.field.metadata}
            assert limits & {"Ge", "Gt"}, f"{name} has no lower bound"
            assert limits & {"Le", "Lt"}, f"{name} has no upper bound"


def test_the_default_file_with_its_lines_uncommented_changes_nothing(tmp_path):
    path = tmp_path / "all.toml"
    path.write_text(re.sub(r"^#(?! )", "", default_toml(), flags=re.MULTILINE), encoding="utf-8")
    loaded = load(path, env={})
    assert loaded.settings == Settings()
    assert "default" not in {loaded.origin(key) for key in keys(Settings)}
