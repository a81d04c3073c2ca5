"""A database that can't be reached is told to callers without saying where it is."""

from __future__ import annotations

import psycopg
import pytest

from ulak.errors import Unavailable
from ulak.stores.postgres.connections import NOT_WRITABLE, NotWritable
from ulak.stores.postgres.session import translate

SOCKET = (
    'connection to server on socket "/srv/secret/.s.PGSQL.5432" failed: No such file or directory\n'
    "\tIs the server running locally and accepting connections on that socket?"
)
SAID = [
    (SOCKET, "No such file or directory"),
    ('connection failed: connection to server at "10.1.2.3", port 5432 failed: Connection refused', "refused"),
    ("failed to resolve host 'db.secret': [Errno -2] Name or service not known", "resolve host"),
    ('connection failed: FATAL:  no pg_hba.conf entry for host "10.1.2.3", user "secret"', "OperationalError"),
]


@pytest.mark.parametrize(("said", "reason"), SAID)
def test_the_reason_is_told_and_the_address_is_not(said, reason):
    told = translate(psycopg.OperationalError(said))
    assert isinstance(told, Unavailable)
    assert "the store can't be reached" in str(told)
    assert reason in str(told)
    assert "check the setting store" in str(told)
    assert not [secret for secret in ("secret", "10.1.2.3", "5432") if secret in str(told)]


def test_what_the_driver_says_of_a_real_address_is_covered(tmp_path):
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(host=str(tmp_path), port=5432, dbname="ulak")
    assert str(tmp_path) in str(caught.value)
    assert str(tmp_path) not in str(translate(caught.value))


def test_what_we_say_ourselves_of_a_standby_stays():
    assert str(translate(NotWritable(NOT_WRITABLE))) == NOT_WRITABLE
