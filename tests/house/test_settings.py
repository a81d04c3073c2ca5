"""Settings: who wins, what is refused, what is never printed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ulak.errors import Misconfigured, NotFound
from ulak.settings import Settings, load
from ulak.settings.document import shown
from ulak.settings.key import keys, value_at

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text, name="ulak.toml"):
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_without_a_file_and_variables_all_values_are_defaults():
    loaded = load(env={})
    assert loaded.settings == Settings()
    assert {loaded.origin(key) for key in keys(Settings)} == {"default"}


def test_the_defaults_keep_the_contract_of_the_notification_engine():
    settings = Settings()
    assert settings.notify.capacity == 1000
    assert (settings.worker.stop_grace_seconds, settings.worker.stop_cancel_seconds) == (30, 10)
    channels = settings.channels
    delays = [channel.simulated_delay_seconds for channel in (channels.email, channels.sms, channels.push)]
    assert delays == [0.15, 0.1, 0.12]


def test_the_notification_engines_own_variables_are_read():
    seed = {"NOTIFICATION_QUEUE_CAPACITY": "7", "NOTIFICATION_QUEUE_CONSUMER_THREADS": "2"}
    settings = load(env=seed).settings
    assert settings.notify.capacity == 7
    assert {one.consumers for _, one in settings.channels if hasattr(one, "consumers")} == {2}
    assert load(env={**seed, "ULAK_NOTIFY__CAPACITY": "9"}).settings.notify.capacity == 9


def test_environment_wins_over_the_file_and_arguments_win_over_both(folder):
    write(folder, "[http]\nport = 1001\nmax_batch = 11\nhost = '::1'\n")
    loaded = load(env={"ULAK_HTTP__PORT": "1002", "ULAK_HTTP__MAX_BATCH": "12"}, overrides={"http.port": 1003})
    http = loaded.settings.http
    assert (http.port, http.max_batch, http.host) == (1003, 12, "::1")
    assert loaded.origin("http.port") == "argument"
    assert loaded.origin("http.max_batch") == "env ULAK_HTTP__MAX_BATCH"
    assert loaded.origin("http.host") == "ulak.toml:4"
    assert loaded.origin("http.max_body_bytes") == "default"


def test_one_section_can_come_from_all_layers(folder):
    write(folder, "[channels.email]\nhost = 'mail.example.com'\n")
    env = {"ULAK_CHANNELS__EMAIL__PORT": "25", "ULAK_CHANNELS__WEBHOOK__ALLOW": "10.0.0.0/8, 192.168.0.0/16"}
    channels = load(env=env, overrides={"channels.email.tls": "none"}).settings.channels
    assert (channels.email.host, channels.email.port, channels.email.tls) == ("mail.example.com", 25, "none")
    assert channels.webhook.allow == ("10.0.0.0/8", "192.168.0.0/16")


def test_an_argument_that_is_none_was_not_given():
    assert load(env={}, overrides={"http.port": None}).origin("http.port") == "default"


def test_the_file_is_named_by_argument_before_variable_before_folder(folder):
    write(folder, "[http]\nport = 1001")
    write(folder, "[http]\nport = 1002", "variable.toml")
    write(folder, "[http]\nport = 1003", "argument.toml")
    env = {"ULAK_CONFIG": "variable.toml"}
    assert load(env={}).settings.http.port == 1001
    assert load(env=env).settings.http.port == 1002
    loaded = load("argument.toml", env=env)
    assert (loaded.settings.http.port, loaded.origin("http.port")) == (1003, "argument.toml:2")


def test_origins_know_the_line_of_dotted_and_quoted_keys(folder):
    write(
        folder,
        "# comment\nhttp.port = 1\n\n[channels]\nemail.'host' = 'x'  # why\nsms = {simulated_delay_seconds = 1}\n",
    )
    loaded = load(env={})
    assert loaded.origin("http.port") == "ulak.toml:2"
    assert loaded.origin("channels.email.host") == "ulak.toml:5"
    assert loaded.origin("channels.sms.simulated_delay_seconds") == "ulak.toml"


def test_a_named_file_that_is_missing_is_an_error():
    with pytest.raises(Misconfigured, match=r"other\.toml: can't be read"):
        load("other.toml", env={})


@pytest.mark.parametrize("content", ["[http\nport = 1", "port = = 1", "\x00"])
def test_a_file_that_is_not_toml_is_an_error_that_names_it(folder, content):
    write(folder, content)
    with pytest.raises(Misconfigured, match=r"ulak\.toml: is not TOML"):
        load(env={})


def test_a_section_may_be_empty(tmp_path):
    file = tmp_path / "ulak.toml"
    file.write_text("[http]\n[worker]\n")
    assert load(file, env={}).settings == load(env={}).settings


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[http]\nprot = 1", "ulak.toml:2: unknown key http.prot; did you mean http.port?"),
        ("stroe = 'memory:'", "ulak.toml:1: unknown key stroe; did you mean store?"),
        ("[htpp]\nport = 1", "unknown key htpp.port; did you mean http.port?"),
        ("[htpp]", "unknown key htpp; did you mean http?"),
        ("[channels.mail]\nsender = 'a'", "did you mean channels.email.sender?"),
        ("http = 1", "http is a section, not a value; set its keys, for example http.host"),
        ("[http.port]\nx = 1", "unknown key http.port.x; did you mean http.port?"),
        ("qqqqqq = 1", "unknown key qqqqqq; `ulak config show` lists all keys"),
    ],
)
def test_an_unknown_key_in_the_file_names_the_nearest_one(folder, toml, message):
    write(folder, toml)
    with pytest.raises(Misconfigured) as caught:
        load(env={})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ULAK_STROE", "ULAK_STORE"),
        ("ULAK_HTTP__PROT", "ULAK_HTTP__PORT"),
        ("ULAK_HTTP_PORT", "ULAK_HTTP__PORT"),
        ("ULAK_NOTIFY__CAPACTIY", "ULAK_NOTIFY__CAPACITY"),
        ("ULAK_HTTP", "ULAK_HTTP__HOST"),
    ],
)
def test_an_unknown_variable_names_the_nearest_one(name, meant):
    with pytest.raises(Misconfigured) as caught:
        load(env={name: "1", "PATH": "x"})
    assert name in str(caught.value)
    assert meant in str(caught.value)


def test_all_mistakes_are_named_at_once(folder):
    write(folder, "[http]\nprot = 1")
    with pytest.raises(Misconfigured) as caught:
        load(env={"ULAK_STROE": "x"}, overrides={"nope": 1})
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"ULAK_HTTP__PORT": "99999"}, "env ULAK_HTTP__PORT: http.port = '99999': must be at most 65,535"),
        ({"ULAK_NOTIFY__ADMISSION": "blok"}, "notify.admission = 'blok': must be 'block', 'reject' or 'wait'"),
        ({"ULAK_CHANNELS__WEBHOOK__ALLOW": "10.0.0.1/8"}, "channels.webhook.allow"),
        ({"ULAK_STORE": "redis://example.com"}, "it begins with one of memory:, sqlite:///, postgresql://"),
        ({"ULAK_SPINE__RETRY_CAP_SECONDS": "0.5"}, "retry_cap_seconds is below retry_first_seconds"),
    ],
)
def test_a_value_out_of_bounds_is_an_error_that_says_which_and_why(env, message):
    with pytest.raises(Misconfigured) as caught:
        load(env=env)
    assert message in str(caught.value)


def test_asking_for_the_origin_of_an_unknown_key_names_the_nearest_one():
    with pytest.raises(NotFound, match=r"did you mean http\.port\?"):
        load(env={}).origin("http.prot")


def test_settings_made_by_hand_ignore_the_environment(monkeypatch):
    monkeypatch.setenv("ULAK_HTTP__PORT", "1")
    assert Settings().http.port == 8025


def test_settings_can_not_be_changed_afterwards():
    with pytest.raises(ValidationError):
        Settings().http.port = 1
    with pytest.raises(ValidationError):
        Settings().store = "memory:"


def test_secrets_never_print():
    env = {"ULAK_CHANNELS__EMAIL__PASSWORD": SECRET, "ULAK_STORE": f"postgresql://ulak:{SECRET}@example.com/ulak"}
    loaded = load(env=env)
    printed = [repr(loaded), str(loaded.settings), repr(loaded.settings), repr(loaded.settings.channels.email)]
    printed += [shown(value_at(loaded.settings, key)) for key in keys(Settings)]
    assert SECRET not in "".join(printed)
    assert loaded.settings.channels.email.password.get_secret_value() == SECRET


@pytest.mark.parametrize(
    "env",
    [
        {"ULAK_STORE": f"redis://ulak:{SECRET}@example.com"},
        {"ULAK_CHANNELS__EMAIL": SECRET},
        {"ULAK_CHANNELS__EMAIL__PASWORD": SECRET},
    ],
)
def test_errors_do_not_print_secrets(env):
    with pytest.raises(Misconfigured) as caught:
        load(env=env)
    assert SECRET not in str(caught.value)


def test_a_secret_of_the_wrong_type_is_not_printed(folder):
    write(folder, "[channels.email]\npassword = 4815162342")
    with pytest.raises(Misconfigured) as caught:
        load(env={})
    assert "4815162342" not in str(caught.value)


@pytest.mark.parametrize("store", ["sqlite:///", "sqlite:////", "sqlite:///.", "sqlite:///..", "sqlite:///:memory:"])
def test_a_store_without_a_file_is_refused(store):
    with pytest.raises(Misconfigured, match="names no file"):
        load(env={"ULAK_STORE": store})


def test_a_setting_without_a_name_is_an_unknown_key():
    with pytest.raises(Misconfigured, match="unknown key"):
        load(env={"ULAK_": "1"})
    with pytest.raises(Misconfigured, match="unknown key"):
        load(env={}, overrides={"": "5"})


def test_a_file_may_begin_with_a_byte_order_mark(folder):
    (folder / "ulak.toml").write_bytes(b"\xef\xbb\xbf[http]\nport = 9000\n")
    loaded = load(env={})
    assert (loaded.settings.http.port, loaded.origin("http.port")) == (9000, "ulak.toml:2")


def test_unknown_keys_and_bad_values_are_named_together(folder):
    name = write(folder, "foo = 1\n[http]\nport = 70000\nhots = 'x'\n[notify]\ncapacity = 'many'\n")
    with pytest.raises(Misconfigured) as refused:
        load(name, env={"ULAK_HTTP__MAX_BATCH": "0"})
    told = str(refused.value)
    assert all(key in told for key in ("foo", "http.hots", "http.port", "notify.capacity", "http.max_batch"))


@pytest.mark.parametrize("text", ["10.0.0.0/8, 192.168.0.0/16", '["10.0.0.0/8", "192.168.0.0/16"]'])
def test_a_list_in_the_environment_is_written_with_commas_or_as_json(text):
    allow = load(env={"ULAK_CHANNELS__WEBHOOK__ALLOW": text}).settings.channels.webhook.allow
    assert list(map(str, allow)) == ["10.0.0.0/8", "192.168.0.0/16"]


def test_a_list_that_is_neither_is_told_both_forms():
    with pytest.raises(Misconfigured, match="a,b,c or"):
        load(env={"ULAK_CHANNELS__WEBHOOK__ALLOW": '["10.0.0.0/8"'})
