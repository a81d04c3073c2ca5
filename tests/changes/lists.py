"""Small lists in the shape of GİB's, written by hand: a test says which users there are, and where."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

MEMBERS = {"PK": "newUserPkList.xml", "GB": "newUserGbList.xml"}
PROLOG = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
FIRST = "2019-05-02T10:11:12"


@dataclass(frozen=True)
class Alias:
    name: str
    created: str = "2023-07-22T13:58:28"
    deleted: str | None = None

    def xml(self) -> str:
        ended = "" if self.deleted is None else f"<DeletionTime>{self.deleted}</DeletionTime>"
        return f"<Alias><Name>{escape(self.name)}</Name><CreationTime>{self.created}</CreationTime>{ended}</Alias>"


@dataclass(frozen=True)
class User:
    """One user of one file; `documents` maps a document type to its aliases."""

    identifier: str
    title: str = "ÖRNEK IŞIK İNŞAAT & GIDA"
    type: str = "OZEL"
    first: str = FIRST
    account: str | None = "OZELENTEGRASYON"
    documents: dict[str, list[Alias]] = field(default_factory=dict)

    def xml(self) -> str:
        account = "" if self.account is None else f"<AccountType>{self.account}</AccountType>"
        inner = "".join(
            f'<Document type="{name}">{"".join(alias.xml() for alias in aliases)}</Document>'
            for name, aliases in self.documents.items()
        )
        return (
            f"    <User>\n<Identifier>{self.identifier}</Identifier><Title>{escape(self.title)}</Title>"
            f"<Type>{self.type}</Type><FirstCreationTime>{self.first}</FirstCreationTime>{account}\n"
            f"<Documents>{inner}</Documents></User>\n"
        )


def invoice(identifier: str, *names: str, **given: object) -> User:
    """A user of e-invoice with live aliases of these names."""
    return User(identifier, documents={"Invoice": [Alias(name) for name in names]}, **given)


def document(users: list[User]) -> bytes:
    return f"{PROLOG}<UserList>\n{''.join(user.xml() for user in users)}</UserList>\n".encode()


def write_zip(path: Path, role: str, content: bytes, member: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A date of its own: with the time of writing, the same list written a moment later would have other bytes.
    entry = zipfile.ZipInfo(member or MEMBERS[role], date_time=(2026, 2, 19, 10, 0, 0))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return path


def write_lists(folder: Path, pk: list[User], gb: list[User]) -> dict[str, Path]:
    return {
        role: write_zip(folder / f"{role.lower()}.zip", role, document(users))
        for role, users in (("PK", pk), ("GB", gb))
    }


def simple(numbers, *, title: str = "UNVAN", despatch: int = 2) -> tuple[list[User], list[User]]:
    """PK and GB lists of users by number; every second one is in e-despatch, too."""
    pk, gb = [], []
    for number in numbers:
        identifier = f"{number:010d}"
        documents = {"Invoice": [Alias(f"urn:mail:pk{number}@x.example")]}
        if number % despatch == 0:
            documents["DespatchAdvice"] = [Alias(f"urn:mail:ipk{number}@x.example")]
        pk.append(User(identifier, f"{title} {number}", documents=documents))
        gb.append(
            User(identifier, f"{title} {number}", documents={"Invoice": [Alias(f"urn:mail:gb{number}@x.example")]})
        )
    return pk, gb
