"""`--app`: which Ulak a process runs."""

from __future__ import annotations

import sys

import pytest

from ulak import Ulak
from ulak.cli.process import add_demo, find_ulak, serve_only
from ulak.errors import Misconfigured

APP = """
from ulak import Ulak
from ulak.settings import load
ulak = Ulak("memory:")
number = 7
def make(settings):
    return Ulak(settings=settings)
kept = Ulak("sqlite:///shop.db")
remote = Ulak("postgresql://ulak:hunter2@example.com/shop")
def stubborn(settings):
    return Ulak("sqlite:///shop.db", settings=settings)
def wrong(settings):
    return settings
def heedless(settings):
    return Ulak("memory:", settings=load(overrides={"channels.email.simulated": False}).settings)
def bare():
    return ulak
def refusing(settings):
    return Ulak("nonsense:")
"""


@pytest.fixture(autouse=True)
def shop(folder, monkeypatch):
    (folder / "shop_of_test.py").write_text(APP)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield
    sys.modules.pop("shop_of_test", None)


def test_a_ulak_is_found_by_module_and_name():
    assert find_ulak("shop_of_test:ulak", None, None) is sys.modules["shop_of_test"].ulak


def test_a_function_makes_one_from_the_settings():
    assert find_ulak("shop_of_test:make", None, ["http.port=9"]).settings.http.port == 9


def test_without_a_name_the_settings_make_one():
    assert find_ulak(None, None, ["store=memory:"]).settings.store == "memory:"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shop_of_test", "write it as module:name"),
        ("nowhere:ulak", "no module nowhere"),
        (":ulak", "write it as module:name"),
        ("nowhere.jobs:ulak", "no module nowhere; start in the folder"),
        ("shop_of_test:missing", "missing"),
        (
            "shop_of_test:bare",
            r"bare: TypeError: bare\(\) takes 0 .*; name a Ulak, or a function that takes the settings",
        ),
        ("shop_of_test:refusing", "no such kind of store"),
        ("json:dumps", "TypeError: .* not JSON serializable; name a Ulak, or a function"),
        ("shop_of_test:number", "neither a Ulak nor a function"),
        ("shop_of_test:wrong", "neither a Ulak nor a function"),
    ],
)
def test_a_wrong_name_is_explained(name, told):
    with pytest.raises(Misconfigured, match=told):
        find_ulak(name, None, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import ulak\ndef f(:\n", r"broken_of_test\.py:2: invalid syntax; correct it"),
        (
            "import ulak\nimport missing_of_test\n",
            r"broken_of_test\.py:2: the module missing_of_test is not here; install",
        ),
        ("from ulak import nothing\n", r"broken_of_test\.py:1: ImportError: cannot import name 'nothing'"),
        ("1 / 0\n", r"broken_of_test\.py:1: ZeroDivisionError: division by zero; correct it"),
        ("raise AttributeError('two\\nlines')\n", r"broken_of_test\.py:1: AttributeError: two lines; correct it"),
    ],
    ids=["syntax", "module", "name", "error", "lines"],
)
def test_an_app_that_can_not_be_imported_is_told_in_a_line_with_its_place(folder, text, told):
    (folder / "broken_of_test.py").write_text(text)
    with pytest.raises(Misconfigured, match=told) as raised:
        find_ulak("broken_of_test:ulak", None, None)
    assert len(str(raised.value).splitlines()) == 1


def test_an_app_with_its_own_settings_takes_no_others():
    with pytest.raises(Misconfigured, match="come too late"):
        find_ulak("shop_of_test:ulak", None, ["http.port=1"])


@pytest.mark.parametrize("name", [None, "shop_of_test:make"])
def test_a_demo_only_pretends_to_send_mail_whoever_makes_it(name):
    assert find_ulak(name, None, ["channels.email.simulated=false"], demo=True).settings.channels.email.simulated


@pytest.mark.parametrize(
    ("name", "told"), [("ulak", "--set and --demo come too late"), ("heedless", "would send real mail in spite of")]
)
def test_a_demo_that_would_send_real_mail_is_refused(name, told):
    with pytest.raises(Misconfigured, match=told):
        find_ulak(f"shop_of_test:{name}", None, None, demo=True)


@pytest.mark.parametrize("name", ["ulak", "kept", "remote", "stubborn"])
@pytest.mark.parametrize("store", ["sqlite:///other.db", "postgresql://ulak:hunter2@example.com/other"])
def test_an_app_that_works_on_another_store_than_the_environment_names_is_refused(monkeypatch, name, store):
    find_ulak(f"shop_of_test:{name}", None, None)
    monkeypatch.setenv("ULAK_STORE", store)
    with pytest.raises(Misconfigured, match=r"but env ULAK_STORE names the store .*; leave the address out") as raised:
        find_ulak(f"shop_of_test:{name}", None, None)
    assert "hunter2" not in str(raised.value)


def test_an_app_that_works_on_another_store_than_the_settings_file_names_is_refused(folder):
    (folder / "ulak.toml").write_text('store = "sqlite:///other.db"\n')
    with pytest.raises(Misconfigured, match=r"works on sqlite:///shop\.db, but ulak\.toml:1 names"):
        find_ulak("shop_of_test:kept", None, None)


@pytest.mark.parametrize(
    ("name", "store"),
    [
        ("ulak", "memory:"),
        ("kept", "sqlite:///./shop.db"),
        ("kept", "sqlite:///{folder}/shop.db"),
        ("remote", "postgres://example.com/shop?sslmode=require"),
        ("make", "sqlite:///other.db"),
    ],
)
def test_an_app_whose_store_the_environment_names_too_is_taken(folder, monkeypatch, name, store):
    monkeypatch.setenv("ULAK_STORE", store.format(folder=folder))
    assert isinstance(find_ulak(f"shop_of_test:{name}", None, None), Ulak)


def test_the_demo_adds_a_kind():
    ulak = Ulak("memory:")
    add_demo(ulak)
    assert ulak.handlers.get("demo.greet") is not None


def test_kinds_name_what_a_process_serves():
    found = find_ulak("shop_of_test:ulak", None, None)
    serve_only(found, ["notify.*", "compute.run.io"])
    with pytest.raises(Misconfigured, match=r"--kinds nope\.\* fits no kind .*notify\.email"):
        serve_only(found, ["nope.*"])
