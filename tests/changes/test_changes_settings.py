"""Settings of the room: the seed's own environment names, and mistakes that are told."""

from __future__ import annotations

import pytest

from ulak import Ulak
from ulak.errors import Misconfigured
from ulak.settings import load

SEED = {
    "GibEndpoints__ChangeRetentionDays": "45",
    "GibEndpoints__MaxAllowedRemovalPercent": "25",
    "GibEndpoints__BatchSize": "5000",
    "GibEndpoints__PkListUrl": "http://lists.example/pk.zip",
    "GibEndpoints__GbListUrl": "http://lists.example/gb.zip",
    "GibEndpoints__DownloadTimeout": "00:05:30",
}


def test_the_seeds_names_are_read():
    changes = load(env=SEED).settings.changes
    assert (changes.retention_days, changes.removal_percent, changes.batch_size) == (45, 25, 5000)
    assert (changes.gib.pk_url, changes.gib.gb_url) == ("http://lists.example/pk.zip", "http://lists.example/gb.zip")
    assert changes.download_timeout_seconds == 330


def test_our_own_names_come_first():
    env = SEED | {"ULAK_CHANGES__RETENTION_DAYS": "7", "ULAK_CHANGES__GIB__PK_URL": "file:///a.zip"}
    changes = load(env=env).settings.changes
    assert (changes.retention_days, changes.gib.pk_url) == (7, "file:///a.zip")


def test_the_defaults_are_the_seeds():
    changes = load(env={}).settings.changes
    assert (changes.retention_days, changes.removal_percent, changes.batch_size) == (30, 10, 25_000)
    assert changes.download_timeout_seconds == 600
    assert changes.gib.cron == ""


@pytest.mark.parametrize("days", ["0", "366"])
def test_retention_is_1_to_365_days(days):
    with pytest.raises(Misconfigured):
        load(env={"GibEndpoints__ChangeRetentionDays": days})


TABLE = """
[[changes.registry]]
name = "{name}"
format = "{format}"
url = "{url}"
key = "id"
fields = {{ {field} = "name" }}
"""


LIST = {"name": "shops", "format": "csv", "url": "file:///x.csv", "field": "title"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": "einvoice"}, "is taken"),
        ({"url": "ftp://x"}, "begins with one of"),
        ({"format": "xml"}, "needs record"),
        ({"name": "Has Blank"}, "name"),
        ({"field": "changedAt"}, "no field can be published as changedAt"),
    ],
)
def test_a_list_that_cant_be_is_told(tmp_path, given, why):
    path = tmp_path / "ulak.toml"
    path.write_text(TABLE.format(**{**LIST, **given}))
    with pytest.raises(Misconfigured, match=why):
        load(path, env={})


def test_a_list_of_ones_own_is_a_registry_and_a_feed(tmp_path):
    from ulak.changes.registry import Registries

    path = tmp_path / "ulak.toml"
    path.write_text(TABLE.format(**LIST))
    registries = Registries(load(path, env={}).settings.changes)
    assert set(registries.by_name) == {"gib", "shops"}
    assert set(registries.feeds) == {"einvoice", "edespatch", "shops"}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('[[changes.rule]]\nfeed = "invoices"\nkind = "mine"', "no feed 'invoices'; there are: einvoice, edespatch"),
        ('[[changes.rule]]\nfeed = "einvoice"\nfields = ["name"]\nkind = "mine"', "einvoice has no field 'name'"),
        ('[[changes.announce]]\nurl = "https://x.example"\nevents = ["sync.done"]', "no event 'sync.done'"),
    ],
)
def test_a_rule_or_announcement_that_could_never_fire_is_refused_at_the_start(tmp_path, table, why):
    path = tmp_path / "ulak.toml"
    path.write_text(table)
    with pytest.raises(Misconfigured, match=why):
        _ = Ulak(settings=load(path, env={}, overrides={"store": "memory:"}).settings).changes
