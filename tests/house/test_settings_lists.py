"""Settings with lists of tables, and those that a foreign environment sets; on a tree of the test's own."""

from __future__ import annotations

import pytest
from pydantic import Field, SecretStr

from ulak.errors import Misconfigured
from ulak.settings import Section, Settings, also, document, load, loader
from ulak.settings.key import keys


class Source(Section):
    """A list of your own."""

    name: str = Field(min_length=1, description="What it is called.")
    password: SecretStr = Field(SecretStr(""), max_length=3, description="What opens it.")


class Feeds(Section):
    """Feeds."""

    days: int = Field(
        30, ge=1, le=365, description="How long.", json_schema_extra=also("GibEndpoints__ChangeRetentionDays")
    )
    source: tuple[Source, ...] = Field((), description="Lists of your own.")


class Tree(Settings):
    feeds: Feeds = Feeds()


@pytest.fixture(autouse=True)
def _tree(monkeypatch):
    monkeypatch.setattr(loader, "Settings", Tree)
    monkeypatch.setattr(loader, "_KEYS", keys(Tree))
    monkeypatch.setattr(document, "Settings", Tree)


@pytest.fixture
def read(tmp_path):
    def read(text, env=None, **overrides):
        path = tmp_path / "ulak.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, env=env or {}, overrides=overrides)

    return read


TWO = """
[feeds]
days = 7

[[feeds.source]]
name = "one"

[[feeds.source]]
name = "two"
password = "abc"
"""


def test_a_list_of_tables_is_read_and_its_line_is_known(read):
    loaded = read(TWO)
    assert [one.name for one in loaded.settings.feeds.source] == ["one", "two"]
    assert loaded.origin("feeds.source").endswith("ulak.toml:5")


def test_a_list_of_tables_can_come_from_the_environment_as_json(read):
    loaded = read("", env={"ULAK_FEEDS__SOURCE": '[{"name": "three"}]'})
    assert [one.name for one in loaded.settings.feeds.source] == ["three"]


def test_a_mistake_in_a_table_says_which_table_and_key(read):
    with pytest.raises(Misconfigured, match=r"ulak\.toml:5: feeds\.source\[1\]\.name = '': "):
        read(TWO.replace('"two"', '""'))
    with pytest.raises(Misconfigured, match=r"feeds\.source\[0\]\.nmae: unknown key; did you mean name\?"):
        read(TWO.replace('name = "one"', 'name = "one"\nnmae = "x"'))


def test_a_secret_in_a_table_is_never_shown(read):
    with pytest.raises(Misconfigured) as refused:
        read(TWO.replace('"abc"', '"hunter2"'))
    assert "feeds.source[1].password" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "abc" not in document.shown(read(TWO).settings.feeds.source)


@pytest.mark.parametrize("name", ["GibEndpoints__ChangeRetentionDays", "GIBENDPOINTS__CHANGERETENTIONDAYS"])
def test_a_foreign_name_wins_over_the_file_and_gives_way_to_our_own(read, name):
    loaded = read(TWO, env={name: "90"})
    assert loaded.settings.feeds.days == 90
    assert loaded.origin("feeds.days") == f"env {name}"
    assert read(TWO, env={name: "90", "ULAK_FEEDS__DAYS": "60"}).settings.feeds.days == 60
    with pytest.raises(Misconfigured, match=rf"env {name}: feeds\.days = '0'"):
        read(TWO, env={name: "0"})


def test_lists_of_tables_and_foreign_names_are_documented():
    page, file = document.reference(), document.default_toml()
    assert "### [[feeds.source]]" in page
    assert "Also `GibEndpoints__ChangeRetentionDays` in the environment." in page
    assert "#   [[feeds.source]]\n#   name = needed  (What it is called.)\n" in file
