"""Lists that must not be published: each writes PK and GB files that are wrong in one way."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from tests.changes.lists import MEMBERS, PROLOG, document, simple, write_zip

PK, GB = simple(range(1, 21))


def lists(
    folder: Path, pk: bytes | None = None, gb: bytes | None = None, members: tuple[str, str] | None = None
) -> None:
    write_zip(folder / "pk.zip", "PK", document(PK) if pk is None else pk, members and members[0])
    write_zip(folder / "gb.zip", "GB", document(GB) if gb is None else gb, members and members[1])


def truncated_zip(folder):
    lists(folder)
    path = folder / "pk.zip"
    path.write_bytes(path.read_bytes()[:-60])


def truncated_xml(folder):
    lists(folder, pk=document(PK)[:-200])


def root_not_closed(folder):
    lists(folder, pk=document(PK).replace(b"</UserList>", b""))


def no_records(folder):
    lists(folder, pk=f"{PROLOG}<UserList></UserList>".encode())


def empty_root(folder):
    lists(folder, gb=f"{PROLOG}<UserList/>".encode())


def no_zip(folder):
    lists(folder)
    (folder / "gb.zip").write_bytes(document(GB))


def empty_file(folder):
    lists(folder)
    (folder / "gb.zip").write_bytes(b"")


def bad_crc(folder):
    lists(folder)
    path = folder / "pk.zip"
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        at = data.index(mark) + place
        data[at : at + 4] = struct.pack("<I", 12345)
    path.write_bytes(data)


def damaged_data(folder):
    lists(folder)
    path = folder / "pk.zip"
    data = bytearray(path.read_bytes())
    data[90:130] = b"\xff" * 40
    path.write_bytes(data)


def encrypted(folder):
    lists(folder)
    path = folder / "pk.zip"
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    path.write_bytes(data)


def two_members(folder):
    lists(folder)
    with zipfile.ZipFile(folder / "pk.zip", "a") as archive:
        archive.writestr("second.xml", document(PK))


def no_member(folder):
    lists(folder, members=("readme.txt", MEMBERS["GB"]))


def bomb(folder):
    record = b"<User>" + b" " * 1000
    lists(folder, pk=PROLOG.encode() + b"<UserList>" + record * 30_000)


def small_bomb(folder):
    lists(folder, pk=document(PK).replace(b"UNVAN 1", b" " * 2_000_000 + b"UNVAN 1", 1))


def wrong_root(folder):
    lists(folder, pk=document(PK).replace(b"UserList>", b"People>"))


def doctype(folder):
    lists(folder, pk=document(PK).replace(b"<UserList>", b"<!DOCTYPE UserList><UserList>"))


def entity(folder):
    declared = b'<!DOCTYPE UserList [<!ENTITY a "aaaaaaaaaa">]><UserList>'
    lists(folder, pk=document(PK).replace(b"<UserList>", declared).replace(b"UNVAN", b"&a;"))


def not_utf8(folder):
    lists(folder, pk=document(PK).replace(b"UNVAN", b"\xdcNVAN"))


def utf16(folder):
    lists(folder, pk=document(PK).decode().encode("utf-16"))


def declared_latin(folder):
    lists(folder, pk=document(PK).replace(b"UTF-8", b"ISO-8859-9"))


def swapped_members(folder):
    lists(folder, pk=document(GB), gb=document(PK), members=(MEMBERS["GB"], MEMBERS["PK"]))


def swapped_content(folder):
    lists(folder, pk=document(GB), gb=document(PK))


def twins(folder):
    lists(folder, gb=document(PK), members=("list.xml", "list.xml"))


def one_missing(folder):
    lists(folder)
    (folder / "gb.zip").unlink()


def unreadable_records(folder):
    lists(folder, pk=document(PK).replace(b"<Identifier>0000000003", b"<Identifier>"))


def junk_between(folder):
    lists(folder, pk=document(PK).replace(b"    <User>", b"  and then <User>", 3))


def html(folder):
    lists(folder, pk=b"<html><body>Service unavailable</body></html>")


ALL = [
    truncated_zip,
    truncated_xml,
    root_not_closed,
    no_records,
    empty_root,
    no_zip,
    empty_file,
    bad_crc,
    damaged_data,
    encrypted,
    two_members,
    no_member,
    bomb,
    small_bomb,
    wrong_root,
    doctype,
    entity,
    not_utf8,
    utf16,
    declared_latin,
    swapped_members,
    swapped_content,
    twins,
    one_missing,
    unreadable_records,
    junk_between,
    html,
]
