"""Standard Webhooks signatures: the published vectors, rotation, tolerance, and that nothing forged passes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.channels.signature import BadSignature, Secret, new_key_pair, new_secret, sign, verify
from ulak.errors import Invalid

# Published with the Standard Webhooks libraries (v1) and with the Svix server (v1a).
SHARED = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNING = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
NOW = datetime(2021, 2, 25, 15, 2, 10, tzinfo=UTC)
BODY = b'{"test": 2432232314}'
V1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
V1A = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="


@pytest.mark.parametrize(("secret", "signature"), [(SHARED, V1), (SIGNING, V1A)])
def test_the_published_vector_is_reproduced(secret, signature):
    assert sign([Secret(secret)], ID, NOW, BODY) == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": signature,
    }


@pytest.mark.parametrize(("secret", "signature"), [(SHARED, V1), (PUBLIC, V1A), (SIGNING, V1A)])
def test_the_published_vector_is_verified(secret, signature):
    headers = {"Webhook-Id": ID, "Webhook-Timestamp": "1614265330", "Webhook-Signature": signature}
    assert verify([Secret(secret)], headers, BODY, NOW) == ID


def test_a_signing_key_may_come_without_its_public_half():
    seed = "whsk_" + base64.b64encode(base64.b64decode(SIGNING.removeprefix("whsk_"))[:32]).decode()
    assert sign([Secret(seed)], ID, NOW, BODY)["webhook-signature"] == V1A


def test_during_a_rotation_both_secrets_sign_and_either_verifies():
    old, new = Secret(new_secret(), expires_at=NOW + timedelta(seconds=1)), Secret(new_secret())
    headers = sign([new, old], ID, NOW, BODY)
    assert len(headers["webhook-signature"].split(" ")) == 2
    assert verify([old], headers, BODY, NOW) == verify([new], headers, BODY, NOW) == ID


def test_after_the_overlap_the_old_secret_neither_signs_nor_verifies():
    old, new = Secret(SHARED, expires_at=NOW), Secret(new_secret())
    headers = sign([new, old], ID, NOW, BODY)
    assert len(headers["webhook-signature"].split(" ")) == 1
    with pytest.raises(BadSignature):
        verify([old], sign([Secret(SHARED)], ID, NOW, BODY), BODY, NOW)


def test_an_instant_without_a_time_zone_is_refused_by_name():
    naive = datetime(2027, 1, 1)
    with pytest.raises(Invalid, match=r"expires_at: .* has no time zone"):
        Secret(SHARED, expires_at=naive)
    with pytest.raises(Invalid, match=r"now: .* has no time zone"):
        verify([Secret(SHARED)], sign([Secret(SHARED)], ID, NOW, BODY), BODY, naive)


def test_shared_and_key_pair_secrets_can_be_mixed():
    signing, public = new_key_pair()
    headers = sign([Secret(SHARED), Secret(signing)], ID, NOW, BODY)
    assert verify([Secret(public)], headers, BODY, NOW) == ID
    assert verify([Secret(SHARED)], headers, BODY, NOW) == ID


def test_without_a_live_secret_there_is_no_signature_header():
    assert "webhook-signature" not in sign([], ID, NOW, BODY)


@pytest.mark.parametrize(("age_seconds", "where"), [(301, "in the past"), (-301, "in the future")])
def test_a_timestamp_outside_the_tolerance_is_refused(age_seconds, where):
    headers = sign([Secret(SHARED)], ID, NOW, BODY)
    with pytest.raises(BadSignature, match=where):
        verify([Secret(SHARED)], headers, BODY, NOW + timedelta(seconds=age_seconds))


def test_the_tolerance_can_be_chosen():
    headers = sign([Secret(SHARED)], ID, NOW, BODY)
    assert verify([Secret(SHARED)], headers, BODY, NOW + timedelta(seconds=500), tolerance_seconds=600) == ID


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_named(name):
    headers = sign([Secret(SHARED)], ID, NOW, BODY)
    del headers[name]
    with pytest.raises(BadSignature, match=name):
        verify([Secret(SHARED)], headers, BODY, NOW)


@pytest.mark.parametrize("timestamp", ["now", "-5", "1614265330.0", "٣", "9" * 40])
def test_a_timestamp_that_is_no_number_is_refused(timestamp):
    headers = sign([Secret(SHARED)], ID, NOW, BODY) | {"webhook-timestamp": timestamp}
    with pytest.raises(BadSignature, match="webhook-timestamp"):
        verify([Secret(SHARED)], headers, BODY, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_%%%",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsk_" + base64.b64encode(b"x" * 64).decode(),
        "whsk_" + base64.b64encode(b"x" * 31).decode(),
        "whpk_" + base64.b64encode(b"x" * 31).decode(),
        "wrong_" + base64.b64encode(b"x" * 32).decode(),
    ],
)
def test_a_malformed_secret_is_refused_without_being_quoted(text):
    with pytest.raises(Invalid) as caught:
        Secret(text)
    assert len(text) < 10 or text[-8:] not in str(caught.value)


def test_a_public_key_can_not_sign():
    with pytest.raises(Invalid, match="can only verify"):
        sign([Secret(PUBLIC)], ID, NOW, BODY)


def test_a_secret_does_not_print_itself():
    assert "MfKQ" not in repr(Secret(SHARED))


secrets = st.builds(lambda raw: Secret("whsec_" + base64.b64encode(raw).decode()), st.binary(min_size=24, max_size=64))


instants = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))


@given(st.lists(secrets, min_size=1, max_size=3), st.binary(max_size=200), instants)
def test_every_signer_is_verified(signers, body, now):
    headers = sign(signers, ID, now, body)
    assert all(verify([signer], headers, body, now) == ID for signer in signers)


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_another_body_never_verifies(body, other):
    headers = sign([Secret(SHARED), Secret(SIGNING)], ID, NOW, body)
    if body != other:
        with pytest.raises(BadSignature):
            verify([Secret(SHARED), Secret(PUBLIC)], headers, other, NOW)


@given(secrets, secrets)
def test_another_secret_never_verifies(signer, other):
    headers = sign([signer], ID, NOW, BODY)
    if signer != other:
        with pytest.raises(BadSignature):
            verify([other], headers, BODY, NOW)


@given(st.text(max_size=60) | st.builds("v1,{}".format, st.text(max_size=60)))
def test_no_made_up_signature_passes(mark):
    headers = sign([Secret(SHARED)], ID, NOW, BODY) | {"webhook-signature": mark}
    with pytest.raises(BadSignature):
        verify([Secret(SHARED), Secret(PUBLIC)], headers, BODY, NOW)
