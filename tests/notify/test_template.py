"""Templates: languages, missing variables, escaping, and that none can eat memory or time."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.errors import Invalid, Misconfigured, NotFound
from ulak.templates.sandbox import Caps
from ulak.templates.template import Templates


def only(text: str, **variables: object) -> str:
    templates = Templates()
    templates.add("t", "en", text)
    return templates.render("t", variables).body


@pytest.fixture
def built_in() -> Templates:
    templates = Templates()
    templates.load()
    return templates


@pytest.mark.parametrize(("language", "greeting"), [("tr", "Merhaba Ayşe"), ("en", "Hello Ayşe"), ("tr-TR", "Merhaba")])
def test_a_template_speaks_the_language_that_is_asked_for(built_in: Templates, language: str, greeting: str) -> None:
    assert greeting in built_in.render("welcome", {"name": "Ayşe"}, language).body


@pytest.mark.parametrize("language", [None, "", "de", "fr-FR"])
def test_an_unknown_language_falls_back_to_the_default_one(built_in: Templates, language: str | None) -> None:
    assert built_in.render("welcome", {"name": "Ada"}, language).language == "en"


def test_the_default_language_can_be_turkish() -> None:
    templates = Templates(default_language="tr")
    templates.load()
    assert templates.render("welcome", {"name": "Ada"}, "de").language == "tr"


def test_a_template_in_one_language_only_is_used_for_all() -> None:
    templates = Templates()
    templates.add("t", "tr", "selam")
    assert templates.render("t", {}, "en").body == "selam"


def test_every_built_in_template_exists_in_both_languages(built_in: Templates) -> None:
    assert built_in.names == ["alarm", "code", "welcome"]
    assert all(built_in.languages(name) == ["en", "tr"] for name in built_in.names)


@pytest.mark.parametrize("language", ["tr", "en"])
@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("welcome", {"name": "Ada", "link": "https://example.org/"}),
        ("alarm", {"title": "Su baskını", "severity": "high", "readings": [{"name": "S1", "value": 4}]}),
        ("code", {"code": "123456", "minutes": 5}),
    ],
)
def test_every_built_in_template_can_be_filled_in(
    built_in: Templates, name: str, variables: dict[str, object], language: str
) -> None:
    assert built_in.render(name, variables, language).body.strip()


def test_capitals_follow_the_language(built_in: Templates) -> None:
    variables = {"title": "x", "severity": "kritik ışık"}
    assert built_in.render("alarm", variables, "tr").subject == "[KRİTİK IŞIK] x"
    assert built_in.render("alarm", {"title": "x", "severity": "critical"}, "en").subject == "[CRITICAL] x"


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(Invalid, match="needs the variable 'name'") as caught:
        only("Hello {{ name }}")
    assert caught.value.fields == [("variables.name", "is missing")]


@pytest.mark.parametrize(
    "text", ["{{ a.b }}", "{{ a['b'] }}", "{{ a.b|upper }}", "{% for x in a.b %}{% endfor %}", "{{ a.b + 1 }}"]
)
def test_a_missing_part_of_a_variable_is_named(text: str) -> None:
    with pytest.raises(Invalid, match="needs the variable 'b'"):
        only(text, a={})


def test_a_default_stands_in_for_a_missing_variable() -> None:
    assert only("{{ name|default('friend') }}") == "friend"


def test_variables_are_escaped_in_html_and_not_in_text() -> None:
    templates = Templates()
    templates.add("t", "en", "{{ x }}", html="<p>{{ x }} {{ xs|join('<br>') }}</p>")
    rendered = templates.render("t", {"x": "<b>&", "xs": ["<i>", 1]})
    assert rendered.body == "<b>&"
    assert rendered.html == "<p>&lt;b&gt;&amp; &lt;i&gt;&lt;br&gt;1</p>"


def test_a_subject_is_always_one_line() -> None:
    templates = Templates()
    templates.add("t", "en", "x", subject="Hi {{ name }}\n")
    assert templates.render("t", {"name": "a\r\nBcc: b@example.org"}).subject == "Hi a Bcc: b@example.org"


def test_loops_conditions_and_sums_work() -> None:
    text = (
        "{% for k, v in prices.items() if v > 1 %}{{ loop.index }}/{{ loop.length }} {{ k }}={{ v * 2 }};{% endfor %}"
    )
    assert only(text, prices={"a": 1, "b": 2, "c": 3}) == "1/2 b=4;2/2 c=6;"


def test_null_prints_as_nothing() -> None:
    assert only("[{{ x }}]", x=None) == "[]"


def test_printing_a_list_is_refused_with_advice() -> None:
    with pytest.raises(Invalid, match="loop over it, join it"):
        only("{{ xs }}", xs=[1])


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ x|attr('__class__') }}",
        "{{ x.upper() }}",
        "{{ x.format(1) }}",
        "{{ range(10) }}",
        "{{ lipsum() }}",
        "{{ cycler('a') }}",
        "{{ self.__init__() }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{% block b %}{% endblock %}",
        "{% autoescape false %}{{ x }}{% endautoescape %}",
        "{{ x|safe }}",
        "{{ x|center(1000000000) }}",
        "{{ 'a' ~ 'b' }}",
        "{{ 9 ** 9 }}",
        "{{ [x, x] }}",
        "{{ x[1:] }}",
        "{% for a in x recursive %}{{ loop(a) }}{% endfor %}",
        "{% set ns.x = 1 %}",
        "{% filter upper %}{% endfilter %}",
        "{{ loop.cycle(1) }}",
        "{{ x|default(*y) }}",
    ],
)
def test_what_templates_may_not_use_is_refused_when_they_are_added(text: str) -> None:
    with pytest.raises(Invalid):
        Templates().add("t", "en", text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{% for a in xs %}" * 4 + "{% endfor %}" * 4,
        "{% for a in xs %}{{ big }}{% endfor %}",
        "{{ xs|join(big) }}",
        "{% set x = big %}" + "{% set x = x + x %}" * 60,
        "{% set n = 1000000 %}" + "{% set n = n * n %}" * 20,
        "{{ big" + "|urlencode" * 60 + " }}",
        "{% for a in xs %}{% if big|upper == 'a' %}{% endif %}{% endfor %}" * 200,
        "{{ 1.5|round(1000000000, 'ceil') }}",
        "{{ '9' * 5000 }}",
        "{{ 1 // 0 }}",
        "{{ 'x'|abs }}",
        "{% for a in 5 %}{% endfor %}",
        "{{ xs.missing() }}",
    ],
)
def test_no_template_makes_much_out_of_little(text: str) -> None:
    with pytest.raises(Invalid):
        only(text, xs=list(range(1000)), big="ş" * 20_000)


def test_an_overlong_template_is_refused() -> None:
    with pytest.raises(Invalid, match="at most 65536"):
        Templates().add("t", "en", "x" * 65_537)


def test_too_many_parts_are_refused() -> None:
    with pytest.raises(Invalid, match="parts"):
        Templates().add("t", "en", "{{ x }}" * 2_000)


@pytest.mark.parametrize("text", ["{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "{{ " + "9" * 5_000 + " }}"])
def test_deep_nesting_and_long_numbers_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Templates().add("t", "en", text)


def test_variables_have_a_size_limit_and_must_be_json() -> None:
    templates = Templates(caps=Caps(variables_bytes=100))
    templates.add("t", "en", "x")
    with pytest.raises(Invalid, match="at most 100"):
        templates.render("t", {"x": "y" * 200})
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (object(), "\ud800", deep):
        with pytest.raises(Invalid, match="plain JSON"):
            templates.render("t", {"x": value})


def test_an_error_never_quotes_a_variable() -> None:
    with pytest.raises(Invalid) as caught:
        only("{{ x|round }}", x="secret-0532")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unknown_template_is_not_found_and_the_known_ones_are_listed(built_in: Templates) -> None:
    with pytest.raises(NotFound, match="alarm, code, welcome"):
        built_in.render("nope", {})


def test_a_folder_replaces_built_in_templates_language_by_language(built_in: Templates, tmp_path: Path) -> None:
    (tmp_path / "welcome.tr.txt").write_text("Selam {{ name }}", "utf-8")
    built_in.load(tmp_path)
    assert built_in.render("welcome", {"name": "Ada"}, "tr").body == "Selam Ada"
    assert built_in.render("welcome", {"name": "Ada"}, "en").body.startswith("Hello Ada")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("welcome.txt", "x", "name it like"),
        ("a.tr.html", "x", "a.tr.txt"),
        ("a.tr.txt", "{% if %}", "Line 1"),
        ("a.tr.txt", "{{ x|nope }}", "there are: abs"),
    ],
)
def test_a_wrong_template_file_stops_the_start_and_names_itself(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    with pytest.raises(Misconfigured, match=message):
        Templates().load(tmp_path)


def test_every_wrong_template_file_of_a_folder_is_named_at_once(tmp_path: Path) -> None:
    files = {"welcome.txt": b"x", "a.tr.html": b"x", "b.tr.txt": b"{% if %}", "c.en.txt": b"\xff", "d.en.txt": b"fine"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Misconfigured) as refused:
        Templates().load(tmp_path)
    told = str(refused.value).splitlines()
    assert len(told) == 4
    assert all(any(wrong in line for line in told) for wrong in ("welcome.txt", "a.tr.txt", "'b' (tr)", "c.en.txt"))


def test_a_missing_template_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="does not exist"):
        Templates().load(tmp_path / "none")


@given(st.text(max_size=200))
def test_any_source_is_either_added_or_refused(source: str) -> None:
    with contextlib.suppress(Invalid):
        only(source, x=1)


@given(st.text(max_size=100))
def test_any_value_survives_a_text_template_and_is_harmless_in_html(value: str) -> None:
    templates = Templates()
    templates.add("t", "en", "[{{ x }}]", html="[{{ x }}]")
    rendered = templates.render("t", {"x": value})
    assert rendered.body == f"[{value}]"
    assert rendered.html is not None
    assert "<" not in rendered.html
