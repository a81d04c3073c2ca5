"""Whatever comes in is either a request or a refusal that names its fields."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import Invalid, Ulak, ids
from ulak.channels.channel import NotificationType
from ulak.channels.destination import server_of
from ulak.http.batch import decode_batch
from ulak.masking import mask_text
from ulak.notify import decide
from ulak.notify.model import Request
from ulak.notify.request import decode_request

TYPES = frozenset(NotificationType)
FIELDS = [field.encode_name for field in msgspec.structs.fields(Request)]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TEXTS = (
    st.none() | st.text(max_size=30) | st.sampled_from(["a@b.c", "https://x.org/h", "http://[", "+905551112233", " "])
)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_decoded_or_refused(data):
    for decode in (lambda body: decode_request(body, TYPES), lambda body: decode_batch(body, 10)):
        with contextlib.suppress(Invalid):
            decode(data)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), VALUES, max_size=6))
def test_any_document_is_decoded_or_refused_by_field(document):
    refusal = refusal_of(document)
    assert refusal is None or all(isinstance(name, str) and why for name, why in refusal.fields)
    assert refusal is None or refusal.fields


def refusal_of(document):
    try:
        decide.check(decode_request(msgspec.json.encode(document), TYPES), TYPES)
    except Invalid as refusal:
        return refusal
    return None


def fields_of(document):
    refusal = refusal_of(document)
    return set() if refusal is None else {name for name, _ in refusal.fields}


def test_all_wrong_fields_are_named_at_once_whatever_is_wrong_with_them():
    document = {"notificationType": "FAX", "recipient": "", "body": "  ", "priority": "SOON", "metadata": [1], "x": 1}
    assert fields_of(document) == {"notificationType", "recipient", "body", "priority", "metadata", "x"}


@pytest.mark.parametrize(
    "recipient", ["a@b.org;c@d.org", "<a@b.org>", "a@b@c.org", "a@b..org", "a b@c.org", "@b.org", "a@", "a,b@c.org"]
)
def test_what_is_not_one_address_is_refused_at_the_door(recipient):
    assert fields_of({"notificationType": "EMAIL", "recipient": recipient, "body": "x"}) == {"recipient"}


@pytest.mark.parametrize("fields", [{"recipient": "ada"}, {"metadata": {"headers": {"Reply-To": "ada"}}}], ids=str)
def test_what_an_address_must_be_stays_readable_when_it_is_masked(fields):
    document = {"notificationType": "EMAIL", "recipient": "a@b.org", "body": "x", **fields}
    told = str(refusal_of(document))
    assert "must be" in told
    assert mask_text(told) == told


@pytest.mark.parametrize(
    "recipient",
    [
        "http://127.0.0.1%00.8.8.8.8/",
        "http://127.0.0.1 /",
        "http://%31/",
        "http://u:p@h.org/",
        "http://h.org:0/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://1.1.1.1./",
    ],
)
def test_a_url_that_can_never_be_reached_is_refused_at_the_door(recipient):
    assert fields_of({"notificationType": "WEBHOOK", "recipient": recipient, "body": "x"}) == {"recipient"}


@pytest.mark.parametrize("break_", ["\u2028", "\u2029", "\x85", "\n", "\x00"])
def test_a_subject_with_a_line_separator_is_refused_at_the_door(break_):
    document = {"notificationType": "EMAIL", "recipient": "a@b.org", "body": "x", "subject": f"a{break_}b"}
    assert fields_of(document) == {"subject"}


@pytest.mark.parametrize("headers", [{"Bcc": "a@b.org"}, {"X-A": 5}, 5, {"X-A": "a\nb"}])
def test_headers_that_mail_may_not_have_are_refused_at_the_door(headers):
    document = {"notificationType": "EMAIL", "recipient": "a@b.org", "body": "x", "metadata": {"headers": headers}}
    assert fields_of(document) == {"metadata"}


@pytest.mark.parametrize("headers", [{"Host": "a.org"}, {"X-A": 5}, 5, {"X-A": "a\nb"}, {"webhook-id": "1"}])
def test_headers_that_a_webhook_may_not_have_are_refused_at_the_door(headers):
    request = {"notificationType": "WEBHOOK", "recipient": "http://a.org/", "body": "x"}
    assert fields_of(request | {"targetMeta": {"headers": headers}}) == {"targetMeta"}


@pytest.mark.parametrize("name", ["a\x00b", "a\x1b[31mb", "a\x7fb", "a\x9bb", "a" * 1000])
async def test_variables_that_spoil_the_subject_of_a_template_are_refused_at_the_door(name, clock):
    async with Ulak("memory:", clock=clock, work=False) as ulak:
        with pytest.raises(Invalid) as refusal:
            await ulak.notify.send("EMAIL", "ada@example.org", template="welcome", variables={"name": name})
    assert {field for field, _ in refusal.value.fields} == {"variables"}


def test_no_text_has_a_nul_in_it_whether_it_is_given_or_rendered():
    for field in ("body", "html", "subject"):
        document = {"notificationType": "EMAIL", "recipient": "ada@example.org", "body": "text", field: "a\x00b"}
        assert fields_of(document) == {field}
    for texts in (("Hi", "a\x00b", None), ("Hi", "text", "a\x00b")):
        with pytest.raises(Invalid, match="NUL"):
            decide.check_rendered(*texts)


def test_a_field_that_stands_there_twice_is_refused():
    with pytest.raises(Invalid) as refused:
        decode_request(b'{"notificationType":"EMAIL","notificationType":"SMS","recipient":"a@b.org","body":"x"}', TYPES)
    assert refused.value.fields == [("notificationType", "is given more than once")]
    nested = b'{"notificationType":"SMS","recipient":"+905551112233","body":"x","metadata":{"body":"y"}}'
    assert decode_request(nested, TYPES).metadata == {"body": "y"}
    with pytest.raises(Invalid) as refused:
        decode_request(nested.replace(b'"y"', b'"y", "\\u0062ody": "z"'), TYPES)
    assert refused.value.fields == [("body", "is given more than once")]


@pytest.mark.parametrize(
    ("rest", "repeated"),
    [
        ('"subject":null,"subject":null', ["subject"]),
        ('"subject":null,"subject" :"x"', ["subject"]),
        ('"metadata":{"a":1,"a":2}', ["a"]),
        ('"metadata":{"a":[{"b":1,"b":2}]},"html":null', ["b"]),
        ('"variables":{"a":1},"targetMeta":{"b":{"c":1,"c":1}}', ["c"]),
        ('"subject":null,"metadata":{"a":{"a":null}}', []),
        ('"subject":"\\":","metadata":{"":[[{"a":1},{"a":1}]]}', []),
        ('"variables":{"a":1},"payload":{"a":1},"targetMeta":{"a":1}', []),
    ],
)
def test_a_key_that_stands_twice_is_refused_beside_nulls_and_at_any_level(rest, repeated):
    body = '{"notificationType":"SMS","recipient":"+905551112233","body":"x",' + rest + "}"
    if not repeated:
        assert decode_request(body.encode(), TYPES).body == "x"
        return
    with pytest.raises(Invalid) as refused:
        decode_request(body.encode(), TYPES)
    assert refused.value.fields == [(key, "is given more than once") for key in repeated]


def test_half_a_character_is_called_what_it_is():
    with pytest.raises(Invalid, match="lone surrogate"):
        decode_request(b'{"body":"\\ud800"}', TYPES)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://Example.org/a", "https://example.org"),
        ("https://example.org:8443/b?token=x", "https://example.org:8443"),
        ("http://user:secret@example.org/", "nowhere"),
        ("HTTP://example.org:80", "http://example.org"),
        ("http://example.org.:0080/x", "http://example.org"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example:443/", "https://xn--bcher-kva.example"),
        ("http://[0:0:0:0:0:0:0:1]:8025/", "http://[::1]:8025"),
        ("http://[::1/", "nowhere"),
    ],
)
def test_a_destination_is_a_server_however_it_is_spelt_and_says_nothing_more(url, key):
    assert server_of(url) == key


@given(st.integers(0, (1 << 63) - 1))
def test_an_id_reads_the_same_both_ways(identifier):
    text = ids.to_text(identifier)
    assert text == str(ids.to_uuid(identifier))
    assert ids.from_uuid(ids.to_uuid(identifier)) == identifier


def test_both_instants_without_a_time_zone_are_named():
    document = {"notificationType": "SMS", "recipient": "ada", "body": "x"}
    instants = {"sendAt": "2027-01-02T00:00:00", "expiresAt": "2027-01-01T00:00:00"}
    assert fields_of({**document, **instants}) == {"sendAt", "expiresAt"}
