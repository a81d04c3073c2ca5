"""One `User` of GİB's lists, nested or flat. A pattern reads the usual form; whatever it does not take, expat reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from xml.parsers import expat

from ulak.changes.sources.cut import bare_block
from ulak.changes.sources.source import BadRecord, Unfit

_SPACE = r"[ \t\n]*"
_ALIAS = (
    rf"<Alias>{_SPACE}<Name>([^<]*)</Name>{_SPACE}<CreationTime>([^<]*)</CreationTime>{_SPACE}"
    rf"(<DeletionTime>[^<]*</DeletionTime>{_SPACE})?</Alias>"
)
_TYPE = r'<Document type="(\w+)">'
_DOCUMENT = rf"{_SPACE}{_TYPE}(?:{_SPACE}{_ALIAS})*{_SPACE}</Document>"
_USER = re.compile(
    rf"{_SPACE}<User>{_SPACE}<Identifier>([^<]*)</Identifier>{_SPACE}<Title>([^<]*)</Title>{_SPACE}<Type>([^<]*)</Type>{_SPACE}"
    rf"<FirstCreationTime>([^<]*)</FirstCreationTime>{_SPACE}(?:<AccountType>([^<]*)</AccountType>{_SPACE})?"
    rf"<Documents>((?:{re.sub(r'[(](?![?])', '(?:', _DOCUMENT)})*){_SPACE}</Documents>{_SPACE}</User>",
    re.ASCII,
)
# What is left to find where the whole pattern has matched: a document's type, or an alias.
_inside = re.compile(f"{_TYPE}|{_ALIAS}", re.ASCII).findall
# What XML forbids or changes on the way: expat knows how.
_CONTROLS = bytes({*range(0x20)} - {0x09, 0x0A})
_odd_entity = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)").search
_SIMPLE = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_entity = re.compile("|".join(_SIMPLE))
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII)
_IDENTIFIER = re.compile(rb"<Identifier>\s*([^<\s][^<]*?)\s*</Identifier>")


class User(NamedTuple):
    """`documents`: of each document type the live aliases, (name, creation time)."""

    identifier: str
    title: str | None
    type: str | None
    first_creation_time: str | None
    account_type: str | None
    documents: dict[str, list[tuple[str, str | None]]]


def read_user(block: bytes) -> User:
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        raise Unfit("it is not UTF-8") from error
    found = None if _is_odd(block) else _USER.fullmatch(text)
    if found is None:
        return read_with_expat(bare_block(block, "User"))
    return _by_pattern(found, _plain if "&" in text else _as_it_is)


def _is_odd(block: bytes) -> bool:
    """Whether a block has what a pattern must not read: by searches in C, which take a microsecond together."""
    return (
        len(block.translate(None, _CONTROLS)) != len(block)
        or (b"]" in block and b"]]>" in block)
        or (b"!" in block and b"<!" in block)
        or (b"?" in block and b"<?" in block)
        or (b"\xef" in block and (b"\xef\xbf\xbe" in block or b"\xef\xbf\xbf" in block))
        or (b"&" in block and _odd_entity(block) is not None)
    )


def identify(block: bytes) -> str | None:
    """The identifier of a block that can't be parsed, if there is exactly one."""
    found = _IDENTIFIER.findall(block)
    return found[0].decode("utf-8", "replace") if len(found) == 1 else None


def _plain(text: str) -> str:
    return _entity.sub(lambda found: _SIMPLE[found[0]], text)


def _as_it_is(text: str) -> str:
    return text


def _by_pattern(found: re.Match[str], plain: Callable[[str], str]) -> User:
    identifier, title, kind, first, account, inner = found.groups()
    documents: dict[str, list[tuple[str, str | None]]] = {}
    live: list[tuple[str, str | None]] = []
    for name, alias, created, deleted in _inside(inner):
        if name:
            live = documents.setdefault(name, [])
        elif not deleted:
            live.append((plain(alias), _time(plain(created))))
    return _user(plain(identifier), plain(title), plain(kind), plain(first), account and plain(account), documents)


class _Reader:
    """Collects the texts of a block by their element; an alias ends with all names that it has."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.documents: dict[str, list[tuple[str, str | None]]] = {}
        self.seen_documents = False
        self._live: list[tuple[str, str | None]] | None = None
        self._names: list[str] = []
        self._created: str | None = None
        self._deleted = False
        self._text: list[str] = []
        self._inside_alias = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._text = []
        if name == "Documents":
            self.seen_documents = True
        elif name == "Document":
            self._live = self.documents.setdefault(attributes.get("type", ""), [])
        elif name == "Alias" and self.seen_documents:
            self._inside_alias, self._names, self._created, self._deleted = True, [], None, False

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        text, self._text = "".join(self._text), []
        if self._inside_alias:
            self._end_in_alias(name, text)
        elif name not in {"User", "Documents", "Document"}:
            self.texts.setdefault(name, text)

    def _end_in_alias(self, name: str, text: str) -> None:
        if name == "Name":
            self._names.append(text)
        elif name == "CreationTime":
            self._created = _time(text)
        elif name == "DeletionTime":
            self._deleted = True
        elif name == "Alias":
            self._inside_alias = False
            if not self._deleted and self._live is not None:
                self._live += [(one, self._created) for one in self._names]


def read_with_expat(block: bytes) -> User:
    reader, parser = _Reader(), expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    try:
        parser.Parse(block, True)
    except expat.ExpatError as error:
        raise BadRecord(f"it is not well-formed: {error}") from error
    texts = reader.texts
    documents = reader.documents if reader.seen_documents else _flat(texts)
    return _user(
        texts.get("Identifier", ""),
        texts.get("Title"),
        texts.get("Type"),
        texts.get("FirstCreationTime"),
        texts.get("AccountType"),
        documents,
    )


def _flat(texts: dict[str, str]) -> dict[str, list[tuple[str, str | None]]]:
    """The older form: a row per alias, of e-invoice alone."""
    alias = texts.get("Alias")
    created = texts.get("AliasCreationTime")
    return {"Invoice": [(alias, created and _time(created))] if alias else []}


def _time(text: str) -> str | None:
    return text.strip().replace(" ", "T") or None


def _is_time(text: str) -> bool:
    """A date that there is: views on PostgreSQL show it as one."""
    try:
        return _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text[:19]))
    except ValueError:
        return False


def _user(
    identifier: str,
    title: str | None,
    kind: str | None,
    first: str | None,
    account: str | None,
    documents: dict[str, list[tuple[str, str | None]]],
) -> User:
    identifier, first = identifier.strip(), (first or "").strip()
    if not identifier:
        raise BadRecord("it has no Identifier")
    if first and not _is_time(first):
        raise BadRecord(f"its FirstCreationTime is not a time: {first[:40]!r}")
    return User(identifier, title, kind, first.replace(" ", "T") or None, account, documents)
