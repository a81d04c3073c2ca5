"""What people may see of recipients, bodies and secrets."""

from __future__ import annotations

import pytest
import structlog

from ulak.masking import mask_body, mask_event, mask_recipient, mask_text, mask_url, mask_value

PLANTED = [
    "ayse.yilmaz",
    "905321234567",
    "532 123 45 67",
    "hunter2",
    "s3cr3t-query",
    "kV9tokentokentokentokentokentoken42",
]


@pytest.mark.parametrize(
    ("recipient", "masked"),
    [
        ("ayse.yilmaz@example.com", "a***@example.com"),
        ("al@example.com", "***@example.com"),
        ("+90 532 123 45 67", "***67"),
        ("https://user:hunter2@hooks.example.com/T0/B0/key?x=1", "https://***@hooks.example.com/***"),
        ("https://hooks.example.com", "https://hooks.example.com"),
        ("c" * 152, "cccc***"),
        ("user-42", "u***"),
        ("7", "***"),
        ("", "***"),
    ],
)
def test_a_recipient_is_recognisable_only_to_who_knows_it(recipient, masked):
    assert mask_recipient(recipient) == masked


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://ulak:hunter2@db.example.com:5432/ulak", "postgresql://***@db.example.com:5432/ulak"),
        ("postgresql://db.example.com/ulak?password=hunter2", "postgresql://db.example.com/ulak?***"),
        ("postgresql://ulak:hun/ter2@db.example.com/ulak", "postgresql://***"),
        ("https://example.com/page#s3cr3t-query", "https://example.com/page#***"),
        ("sqlite:///ulak.db", "sqlite:///ulak.db"),
        ("memory:", "memory:"),
    ],
)
def test_an_address_keeps_its_place_and_loses_its_secrets(url, masked):
    assert mask_url(url) == masked


def test_a_body_is_told_apart_by_length_and_mark_only():
    assert "merhaba" not in mask_body("merhaba")
    assert mask_body("merhaba").startswith("[7 characters, mark ")
    assert mask_body("merhaba") == mask_body("merhaba")
    assert mask_body("merhaba") != mask_body("merhabo")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("550 ayse.yilmaz@example.com unknown", "550 a***@example.com unknown"),
        ("recipient=ayse.yilmaz@example.com,", "recipient=a***@example.com,"),
        ('<"ayse.yilmaz 1"@example.com>', "<***@example.com>"),
        ("call 0 (532) 123-45-67 back", "call ***67 back"),
        ("tel905321234567", "tel***67"),
        ("Authorization: Bearer hunter2", "Authorization: ***"),
        ("got bearer hunter2-hunter2", "got bearer ***"),
        ('{"password": "hunter2 \\" hunter2", "a": 1}', '{"password": ***, "a": 1}'),
        ("smtp_password='hunter2' host=x", "smtp_password=*** host=x"),
        ("user=x&token=hunter2&z=1", "user=x&token=***&z=1"),
        ("no route to https://u:hunter2@example.com/a?b=hunter2", "no route to https://***@example.com/a?***"),
        (
            "POST https://hooks.example.com/services/T0/B0/kV9tokentokentok 404",
            "POST https://hooks.example.com/services/T0/B0/*** 404",
        ),
        ("GET http://127.0.0.1/inbox/ayse.yilmaz%40example.com", "GET http://127.0.0.1/inbox/***"),
        ("token kV9tokentokentokentokentokentoken42 is not registered", "token *** is not registered"),
        ("signed with whsec_MfKQ9r8GKYqrTwjUPD8I", "signed with ***"),
    ],
)
def test_people_and_secrets_in_a_text_are_masked(text, masked):
    assert mask_text(text) == masked
    assert not any(planted in mask_text(text) for planted in PLANTED)


@pytest.mark.parametrize(
    "text",
    [
        "job 923456789012345678 attempt 3 of 20",
        "due 2026-11-15T23:32:10.123456 or 2026-11-15 23:32",
        "notification 123e4567-e89b-42d3-a456-426614174000 expired",
        "no connection to 192.168.100.200:8025",
        "trace act-8087120345671234",
        "http://127.0.0.1:8025/api/notifications/923456789012345678",
        "test_expired_offer_goes_to_the_next_candidate failed in src/ulak/spine/worker.py",
        "sqlite:///ulak.db is in use",
    ],
)
def test_what_is_needed_to_find_a_fault_stays_readable(text):
    assert mask_text(text) == text


def test_long_hostile_text_does_not_hang_the_masking():
    for piece in ("password", "a@", "1 ", '"', "x://", "eyJ", "token=", "-", '\\"'):
        mask_text(piece * 20_000)


def test_the_log_processor_masks_by_name_and_by_content():
    event = {
        "event": "refused by ayse.yilmaz@example.com",
        "recipient": "+905321234567",
        "body": "kod hunter2",
        "password": "hunter2",
        "attempt": 905321234567,
        "headers": {"Authorization": "Basic hunter2", "host": "example.com"},
        "cc": ["ayse.yilmaz@example.com", "+905321234567"],
        "error": ValueError("no such user ayse.yilmaz@example.com"),
        "raw": b"password=hunter2",
        "metadata": {"note": "hunter2"},
        "ok": None,
    }
    masked = mask_event(None, "info", event)
    assert masked["attempt"] == 905321234567
    assert masked["headers"] == {"Authorization": "***", "host": "example.com"}
    assert masked["ok"] is None
    assert not any(planted in str({**masked, "attempt": 0}) for planted in PLANTED)


@pytest.mark.parametrize(
    ("name", "number", "masked"),
    [
        ("note", 905321234567, "***67"),
        ("note", 1234567, "***67"),
        ("note", -1234567, "-***67"),
        ("note", 10**50, "***"),
        ("phone", 155, "1***"),
        ("pin_token", 1234, "***"),
    ],
)
def test_a_number_that_may_be_somebodys_is_masked(name, number, masked):
    assert mask_value("", {"deep": [{name: number}]}) == {"deep": [{name: masked}]}


@pytest.mark.parametrize("number", [0, 42, 999_999, -5, 923456789012345678, 1234567.25, True, None])
def test_a_number_that_tells_nothing_stays_a_number(number):
    shown = mask_value("", {"n": number})["n"]
    assert (shown, type(shown)) == (number, type(number))


def test_a_number_too_long_to_be_written_is_hidden():
    assert mask_value("n", 10**5000) == "***"


def test_a_number_in_the_log_is_masked_where_its_name_says_whose_it_is():
    event = {"recipient": 905321234567, "bytes": 12345678, "job": {"phone_number": 905321234567}}
    assert mask_event(None, "info", event) == {
        "recipient": "***67",
        "bytes": 12345678,
        "job": {"phone_number": "***67"},
    }


def test_a_traceback_in_the_log_is_masked():
    try:
        raise ValueError("refused for ayse.yilmaz@example.com")
    except ValueError:
        event = structlog.processors.format_exc_info(None, "error", {"event": "x", "exc_info": True})
    assert "ayse.yilmaz" not in str(mask_event(None, "error", event))


def test_a_person_who_is_the_name_of_a_field_is_masked():
    masked = mask_value("", {"ada@example.org": {"+905551112233": 1, "orderId": 7}, "token": "abc"})
    assert "ada@" not in str(masked)
    assert "5551112" not in str(masked)
    assert masked["token"] == "***"
    ((field, inner),) = [(name, value) for name, value in masked.items() if name != "token"]
    assert field.endswith("example.org")
    assert inner["orderId"] == 7
