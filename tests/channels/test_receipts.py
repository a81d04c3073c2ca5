"""What providers post back: only what they signed is read, and a repeat tells nothing new."""

from __future__ import annotations

import pytest

from tests.providers import slack, twilio, whatsapp
from ulak.channels.callbacks import Callbacks
from ulak.channels.receipts import Unproven
from ulak.channels.slack import read_slack, verify_slack
from ulak.channels.twilio import read_twilio, verify_twilio
from ulak.channels.whatsapp import read_whatsapp, verify_whatsapp, whatsapp_challenge
from ulak.errors import Invalid, NotFound
from ulak.settings import Settings

URL = "https://ulak.example.org/api/actions/receipts/twilio"
NOW = 1_800_000_000_000


def test_twilios_callback_is_read_and_a_forged_one_is_not():
    headers, body = twilio.status_callback(URL, "SM1", "delivered")
    [receipt] = read_twilio(verify_twilio(twilio.TOKEN, URL, headers, body), NOW)
    assert (receipt.provider_id, receipt.status, receipt.code) == ("twilio:SM1", "delivered", None)
    for token, url, given, content in (
        ("other", URL, headers, body),
        ("", URL, headers, body),
        (twilio.TOKEN, URL + "?x", headers, body),
        (twilio.TOKEN, URL, {}, body),
        (twilio.TOKEN, URL, {"X-Twilio-Signature": "ünknown"}, body),
        (twilio.TOKEN, URL, headers, body.replace(b"delivered", b"failed")),
    ):
        with pytest.raises(Unproven):
            verify_twilio(token, url, given, content)


def test_twilios_failures_have_a_code_and_name_dead_numbers():
    headers, body = twilio.status_callback(URL, "SM1", "undelivered", 30005)
    [receipt] = read_twilio(verify_twilio(twilio.TOKEN, URL, headers, body), NOW)
    assert (receipt.status, receipt.code, receipt.gone) == ("failed", "TWILIO_UNKNOWN_NUMBER", True)
    headers, body = twilio.status_callback(URL, "SM1", "queued")
    assert read_twilio(verify_twilio(twilio.TOKEN, URL, headers, body), NOW) == []


def test_whatsapps_callback_is_read_and_a_forged_one_is_not():
    headers, body = whatsapp.status_callback("wamid.1", "failed", 131047)
    verify_whatsapp(whatsapp.SECRET, headers, body)
    [receipt] = read_whatsapp(body)
    assert (receipt.provider_id, receipt.status, receipt.code) == (
        "whatsapp:wamid.1",
        "failed",
        "WHATSAPP_WINDOW_CLOSED",
    )
    assert receipt.at_millis == NOW
    for secret, given, content in (("", headers, body), ("other", headers, body), (whatsapp.SECRET, {}, body)):
        with pytest.raises(Unproven):
            verify_whatsapp(secret, given, content)
    with pytest.raises(Invalid):
        read_whatsapp(b"[]")


def test_metas_question_is_answered_only_with_our_word():
    query = {"hub.mode": "subscribe", "hub.verify_token": "word", "hub.challenge": "1158201444"}
    assert whatsapp_challenge("word", query) == "1158201444"
    for word in ("", "other"):
        with pytest.raises(Unproven):
            whatsapp_challenge(word, query)


def test_slacks_button_is_read_and_an_old_or_forged_request_is_not():
    headers, body = slack.interaction(NOW // 1000, "acknowledge", "run-1")
    verify_slack(slack.SECRET, headers, body, NOW + 299_000)
    [tap] = read_slack(body)
    assert (tap.action, tap.value, tap.user) == ("acknowledge", "run-1", "U1")
    for secret, given, now in (
        (slack.SECRET, headers, NOW + 301_000),
        (slack.SECRET, headers, NOW - 301_000),
        ("other", headers, NOW),
        ("", headers, NOW),
        (slack.SECRET, {**headers, "X-Slack-Request-Timestamp": "x"}, NOW),
    ):
        with pytest.raises(Unproven):
            verify_slack(secret, given, body, now)


def test_the_settings_secrets_open_each_providers_callbacks():
    settings = Settings(
        http={"public_url": "https://ulak.example.org"},
        channels={
            "sms": {"auth_token": twilio.TOKEN},
            "whatsapp": {"app_secret": whatsapp.SECRET, "verify_token": "word"},
            "slack": {"signing_secret": slack.SECRET},
        },
    )
    callbacks = Callbacks(settings)
    headers, body = twilio.status_callback(URL, "SM1", "delivered")
    assert callbacks.read("twilio", headers, body, NOW).receipts[0].status == "delivered"
    headers, body = whatsapp.status_callback("wamid.1", "read")
    [receipt] = callbacks.read("whatsapp", headers, body, NOW).receipts
    assert (receipt.provider_id, receipt.status) == ("whatsapp:wamid.1", "read")
    headers, body = slack.interaction(NOW // 1000, "acknowledge", "run-1")
    assert callbacks.read("slack", headers, body, NOW).taps[0].value == "run-1"
    query = {"hub.mode": "subscribe", "hub.verify_token": "word", "hub.challenge": "1"}
    assert callbacks.challenge("whatsapp", query) == "1"
    with pytest.raises(NotFound):
        callbacks.read("fcm", {}, b"", NOW)
    with pytest.raises(NotFound):
        callbacks.challenge("slack", {})


def test_without_secrets_nothing_is_believed():
    callbacks = Callbacks(Settings())
    for provider, (headers, body) in {
        "twilio": twilio.status_callback(URL, "SM1", "delivered"),
        "whatsapp": whatsapp.status_callback("wamid.1", "read"),
        "slack": slack.interaction(NOW // 1000, "acknowledge", "run-1"),
    }.items():
        with pytest.raises(Unproven):
            callbacks.read(provider, headers, body, NOW)
