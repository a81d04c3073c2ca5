"""`ulak config`, as a user calls it."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from ulak.cli import app, main
from ulak.settings.document import default_toml

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ulak(*words, env=None):
    return CliRunner().invoke(app, list(words), env=env)


def row(output, key):
    return next(line.split(maxsplit=2) for line in output.splitlines() if line.startswith(f"{key} "))


def test_show_prints_every_value_with_its_origin(folder):
    (folder / "ulak.toml").write_text("[http]\nport = 9000\n")
    result = ulak("config", "show", "--set", "notify.capacity=7", env={"ULAK_LOG__LEVEL": "debug"})
    assert result.exit_code == 0
    assert [cell.strip() for cell in row(result.output, "http.port")] == ["http.port", "9000", "ulak.toml:2"]
    assert [cell.strip() for cell in row(result.output, "notify.capacity")][1:] == ["7", "argument"]
    assert [cell.strip() for cell in row(result.output, "log.level")][1:] == ['"debug"', "env ULAK_LOG__LEVEL"]
    assert [cell.strip() for cell in row(result.output, "http.host")][1:] == ['"127.0.0.1"', "default"]


def test_show_prints_no_secret():
    env = {"ULAK_CHANNELS__EMAIL__PASSWORD": SECRET, "ULAK_STORE": f"postgresql://ulak:{SECRET}@example.com/ulak"}
    output = ulak("config", "show", env=env).output
    assert SECRET not in output
    assert row(output, "store")[1] == '"postgresql://***@example.com/ulak"'
    assert row(output, "channels.email.password")[1] == "**********"


@pytest.mark.parametrize(
    "address",
    [
        f"host=example.com password={SECRET}",
        f"host=example.com password='{SECRET}' options=a://b",
        f"ulak:{SECRET}@example.com/ulak",
        f"mysql://ulak:{SECRET}@example.com/ulak",
        SECRET,
    ],
)
def test_check_prints_no_secret_of_a_store_that_it_refuses(address):
    result = ulak("config", "check", env={"ULAK_STORE": address})
    assert result.exit_code == 1
    assert "env ULAK_STORE: store" in result.output
    assert SECRET not in result.output


def test_check_is_content_with_good_settings():
    assert ulak("config", "check").exit_code == 0
    assert ulak("config", "check", "--set", "store=postgresql://ulak@a:5432,b/ulak").exit_code == 0


@pytest.mark.parametrize("place", ["h:99999", "h:abc", "h:0", "a:1,b:65536", "h:٥", "[::1", "ulak:p@ss@h"])
def test_check_refuses_a_postgresql_address_that_leads_nowhere(folder, place):
    (folder / "ulak.toml").write_text(f"store = 'postgresql://{place}/x'\n", encoding="utf-8")
    result = ulak("config", "check")
    assert result.exit_code == 1
    assert "ulak.toml:1: store: the address of the PostgreSQL store can't be read" in result.output
    assert "a port is a number from 1 to 65535" in result.output


def test_check_fails_and_names_each_mistake(folder):
    (folder / "ulak.toml").write_text("[http]\nprot = 9000\n")
    result = ulak("config", "check", env={"ULAK_STROE": "memory:"})
    assert result.exit_code == 1
    assert "ulak.toml:2: unknown key http.prot; did you mean http.port?" in result.output
    assert "did you mean ULAK_STORE?" in result.output


def test_an_assignment_without_a_value_is_explained():
    result = ulak("config", "check", "--set", "http.port")
    assert result.exit_code == 1
    assert "write --set http.port=VALUE" in result.output


def test_default_prints_the_default_file():
    assert ulak("config", "default").output == default_toml()


def test_an_error_ends_the_command_with_its_message_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ulak", "config", "show", "--set", "http.prot=1"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == "ulak: argument: unknown key http.prot; did you mean http.port?\n"
