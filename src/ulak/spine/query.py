"""Named SQL statements, one per file: `claim_jobs.sql`, and `claim_jobs.postgres.sql` where the dialects differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

# A parameter is :name; a PostgreSQL cast is ::type and must not be taken for one.
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_COMMENT = re.compile(r"--[^\n]*")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sqlite: str
    postgres: str
    postgres_parameters: tuple[str, ...]


def _load(package: str, name: str) -> Query:
    folder = resources.files(package) / "queries"
    shared = folder / f"{name}.sql"
    own = folder / f"{name}.postgres.sql"
    sqlite = shared.read_text() if shared.is_file() else ""
    postgres = own.read_text() if own.is_file() else sqlite
    if not postgres:
        raise LookupError(f"no query {name!r} in {package}.queries")
    postgres = _COMMENT.sub("", postgres)
    names = tuple(dict.fromkeys(_PARAMETER.findall(postgres)))
    return Query(
        name, _COMMENT.sub("", sqlite).strip(), _PARAMETER.sub(r"%(\1)s", postgres.replace("%", "%%")).strip(), names
    )


class Queries:
    """The statements of one package, loaded when first asked for: `sql = Queries(__package__)`, `sql.claim_jobs`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Query:
        query = _load(self._package, name)
        setattr(self, name, query)
        return query
