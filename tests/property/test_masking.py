"""Whatever surrounds it, a planted secret does not survive masking."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.masking import mask_event, mask_recipient, mask_text, mask_url

LETTERS = string.ascii_letters + "çğıöşüÇĞİÖŞÜ"
surroundings = st.text(
    alphabet=string.ascii_letters + string.digits + " \n\t.,;:!?()[]{}<>'\"/\\=&%#@+-_çğış", max_size=40
)
words = st.text(alphabet=LETTERS, min_size=4, max_size=12)
locals_ = st.builds("{}.{}{}".format, words, words, st.integers(0, 99))
domains = st.sampled_from(["example.com", "posta.example.org", "örnek.example"])
passwords = st.text(alphabet=string.ascii_letters + string.digits + "!$*+-._~", min_size=8, max_size=30).map(
    lambda text: f"{text}7"  # a digit, so that the words around it can't be the same
)
random_tokens = st.text(alphabet=string.ascii_letters + string.digits + "_-", min_size=40, max_size=160).map(
    lambda text: f"d{text}7"
)


@st.composite
def phones(draw):
    # From 256 on, because dotted groups that are also a machine's address are taken for one.
    groups = [draw(st.sampled_from(["+90", "0", "90", "+49"])), *(str(draw(st.integers(256, 999))) for _ in range(3))]
    return draw(st.sampled_from(["", " ", "-", ".", " ("])).join(groups)


@given(before=surroundings, local=locals_, domain=domains, after=surroundings)
def test_no_planted_mail_address_survives(before, local, domain, after):
    masked = mask_text(f"{before} {local}@{domain} {after}")
    assert f"{local}@{domain}" not in masked
    assert local not in masked.replace(before, "").replace(after, "")


@given(before=surroundings, phone=phones(), after=surroundings)
def test_no_planted_phone_number_survives(before, phone, after):
    assert phone not in mask_text(f"{before} {phone} {after}").replace(before, "").replace(after, "")


@given(
    before=st.text(alphabet=LETTERS + " .,", max_size=30),
    form=st.sampled_from(
        ["password={}", '"api_key": "{}"', "Authorization: Bearer {}", "client-secret: '{}'", "bearer {}", "TOKEN = {}"]
    ),
    secret=passwords,
    after=st.sampled_from(["", " and more", ", next", "\nline"]),
)
def test_no_planted_secret_survives(before, form, secret, after):
    assert secret not in mask_text(f"{before} {form.format(secret)}{after}")


@given(token=random_tokens)
def test_no_planted_device_token_survives(token):
    assert token not in mask_text(f"the token {token} is gone")
    assert token not in mask_recipient(token)


@given(user=words, password=passwords, host=domains, key=passwords)
def test_no_credential_in_a_url_survives(user, password, host, key):
    url = f"https://{user}:{password}@{host}/path?key={key}"
    for masked in (mask_url(url), mask_text(f"failed: {url}"), mask_recipient(url)):
        assert password not in masked
        assert key not in masked


@given(text=st.text(max_size=200))
def test_masking_takes_any_text(text):
    mask_text(text)
    mask_recipient(text)
    mask_event(None, "info", {"event": text, "body": text, text: text})


@pytest.mark.parametrize("name", ["recipient", "body", "password", "note"])
@given(local=locals_)
def test_no_field_of_a_log_event_lets_an_address_through(name, local):
    assert local not in str(mask_event(None, "info", {"event": "x", name: {"to": [f"{local}@example.com"]}}))
