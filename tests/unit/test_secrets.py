"""Secrets by reference: from the environment, from a file, from a plug-in; and never in an error."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from pydantic import SecretStr

from ulak import secrets
from ulak.errors import Misconfigured


def test_a_secret_is_itself_or_comes_from_where_its_reference_says(tmp_path, monkeypatch):
    monkeypatch.setenv("SMS_TOKEN", "from-env")
    (tmp_path / "token").write_text("from-file\n")
    assert secrets.reveal(SecretStr("itself"), "x") == "itself"
    assert secrets.reveal(SecretStr("${env:SMS_TOKEN}"), "x") == "from-env"
    assert secrets.reveal(SecretStr(f"${{file:{tmp_path}/token}}"), "x") == "from-file"


def test_a_plug_in_knows_other_places(monkeypatch):
    point = EntryPoint(name="vault", value=f"{__name__}:look", group=secrets.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda name: f"vault's {name}")
    monkeypatch.setattr(secrets, "entry_points", lambda group: [point])
    assert secrets.reveal(SecretStr("${vault:kv/ulak}"), "x") == "vault's kv/ulak"


def test_what_can_not_be_found_is_told_by_its_setting(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    for text, words in (
        ("${env:NOT_THERE}", "channels.sms.auth_token can't be read from env:NOT_THERE"),
        (f"${{file:{tmp_path}/no}}", "channels.sms.auth_token can't be read"),
        ("${valt:x}", "there are: env, file"),
    ):
        with pytest.raises(Misconfigured, match=words):
            secrets.reveal(SecretStr(text), "channels.sms.auth_token")
