"""A PostgreSQL address as libpq reads it, without its complaints: they repeat the address, password and all."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ulak.errors import Misconfigured

# Defaults that an address may override. A host that does not answer is given up in time for the next one in the list.
_USUAL = {"connect_timeout": 5, "application_name": "ulak"}
# Not to be overridden: names, keys and payloads are UTF-8.
_FIXED = {"client_encoding": "utf8"}

_PASSWORD = re.compile(r"^(\w+://[^:/@]*):[^/@]*@")
_SECRET = re.compile(
    r"([?&](?:password|sslpassword|oauth_client_secret|scram_client_key|scram_server_key)=)[^&]*", re.IGNORECASE
)


def read_address(address: str) -> dict[str, Any]:
    """The parameters of a connection. The driver finds those that the address lacks: service, passfile, environment."""
    try:
        given = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        given = {"host": "@"}
    # An unescaped @ or / cuts a password in two, and its rest is taken for a host or a port; so neither is shown.
    if "@" in str(given.get("host", "")) or not all(map(_is_port, str(given.get("port", "")).split(","))):
        raise Misconfigured(
            "the address of the PostgreSQL store can't be read; it is postgresql://user:password@host:port/database, "
            "then ? and parameters of libpq; a port is a number from 1 to 65535. Write special characters in the user "
            "and the password as % and two hex digits (@ is %40, / is %2F, : is %3A, % is %25), or leave the password "
            "to PGPASSWORD or ~/.pgpass"
        )
    return _USUAL | given | _FIXED


def _is_port(text: str) -> bool:
    """One that is left out is the usual one."""
    return not text or (re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65_536)


def without_secrets(address: str) -> str:
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", address))
