"""Named SQL statements, one per file: `find_due.sql`, and `find_due.postgres.sql` where the dialects differ.

A statement that only one of them needs has only that file: `claim_jobs.postgres.sql`, `find_ready.sqlite.sql`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

# A parameter is :name; a PostgreSQL cast is ::type and must not be taken for one.
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_COMMENT = re.compile(r"--[^\n]*")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sqlite: str
    postgres: str
    postgres_parameters: tuple[str, ...]


def _load(package: str, name: str) -> Query:
    folder = resources.files(package) / "queries"

    def text(ending: str) -> str:
        file = folder / f"{name}{ending}"
        return _COMMENT.sub("", file.read_text()).strip() if file.is_file() else ""

    shared = text(".sql")
    sqlite, postgres = text(".sqlite.sql") or shared, text(".postgres.sql") or shared
    if not sqlite and not postgres:
        raise LookupError(f"no query {name!r} in {package}.queries")
    names = tuple(dict.fromkeys(PARAMETER.findall(postgres)))
    return Query(name, sqlite, PARAMETER.sub(r"%(\1)s", postgres.replace("%", "%%")), names)


class Queries:
    """The statements of one package, loaded when first asked for: `sql = Queries(__package__)`, `sql.claim_jobs`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Query:
        query = _load(self._package, name)
        setattr(self, name, query)
        return query
