"""Whatever comes in is either a request or a refusal that names its fields; the quick look and the close one agree."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import Invalid, ids
from ulak.channels.channel import NotificationType
from ulak.notify import decide
from ulak.notify.model import Request
from ulak.notify.service import decode_batch, decode_request

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
    for decode in (decode_request, lambda body: decode_batch(body, 10)):
        with contextlib.suppress(Invalid):
            decode(data)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), VALUES, max_size=6))
def test_any_document_is_decoded_or_refused_by_field(document):
    refusal = refusal_of(document)
    assert refusal is None or all(isinstance(name, str) and why for name, why in refusal.fields)
    assert refusal is None or refusal.fields


def refusal_of(document):
    try:
        decide.check(decode_request(msgspec.json.encode(document)), TYPES)
    except Invalid as refusal:
        return refusal
    return None


@given(
    st.builds(
        Request,
        notification_type=st.sampled_from([*TYPES, "PIGEON", ""]) | st.none(),
        recipient=TEXTS,
        subject=TEXTS,
        body=TEXTS,
        priority=st.sampled_from(["LOW", "SOON"]) | st.none(),
        order_key=TEXTS,
        on_uncertain=st.sampled_from(["hold", "guess"]) | st.none(),
        send_at=st.none() | st.datetimes() | st.just(datetime(2030, 1, 1, tzinfo=UTC)),
    )
)
def test_the_quick_look_never_lets_pass_what_the_close_one_refuses(request):
    if decide._is_plain(request, TYPES):
        problems = []
        for look in (decide._check_recipient, decide._check_content, decide._check_choices):
            look(request, problems)
        decide._check_type(request, TYPES, problems)
        assert problems == []


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://Example.org/a", "https://example.org"),
        ("https://example.org:8443/b?token=x", "https://example.org:8443"),
        ("http://user:secret@example.org/", "http://example.org"),
    ],
)
def test_a_destination_is_a_server_and_says_nothing_more(url, key):
    assert decide._destination(url) == key


@given(st.integers(0, (1 << 63) - 1))
def test_an_id_reads_the_same_both_ways(identifier):
    text = ids.to_text(identifier)
    assert text == str(ids.to_uuid(identifier))
    assert ids.from_uuid(ids.to_uuid(identifier)) == identifier
