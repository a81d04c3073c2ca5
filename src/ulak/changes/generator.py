"""Lists in the exact shape of GİB's, made up: for tutorials, tests and benchmarks. The oddities of real ones are in."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

MEMBERS = {"PK": "newUserPkList.xml", "GB": "newUserGbList.xml"}
FILES = {"PK": "newUserPkListxml.zip", "GB": "newUserGbListxml.zip"}
_PROLOG = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<UserList>\n'
_NAMES = (
    "IŞIK",
    "İNŞAAT",
    "GIDA",
    "ÇELİK",
    "TEKSTİL",
    "LOJİSTİK",
    "YAZILIM",
    "TARIM",
    "ENERJİ",
    "ÖZGÜR",
    "ÜNLÜ",
    "SARI",
)
_FORMS = ("LİMİTED ŞİRKETİ", "ANONİM ŞİRKETİ", "SANAYİ VE TİCARET A.Ş.", "& OĞULLARI", "KOLLEKTİF")
_ACCOUNTS = ("OZELENTEGRASYON", "GIBPORTAL", "ENTEGRASYON")


@dataclass(frozen=True, slots=True)
class Plan:
    """`generation` counts lists: each differs from the one before it by about `churn` of its users."""

    users: int
    generation: int = 0
    churn: float = 0.01
    seed: int = 1


def write_lists(folder: Path, plan: Plan) -> dict[str, Path]:
    """Both ZIPs of a generation; returns their paths by role."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {role: folder / name for role, name in FILES.items()}
    for role, path in paths.items():
        write_list(path, role, plan)
    return paths


def write_list(path: Path, role: str, plan: Plan) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        member = zipfile.ZipInfo(MEMBERS[role], (2026, 1, 1, 0, 0, 0))
        member.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(member, "w", force_zip64=True) as file:
            file.write(_PROLOG.encode())
            waiting: list[str] = []
            for user in users_of(role, plan):
                waiting.append(user)
                if len(waiting) == 500:
                    file.write("".join(waiting).encode())
                    waiting = []
            file.write("".join([*waiting, "</UserList>\n"]).encode())


def users_of(role: str, plan: Plan) -> Iterator[str]:
    """Return the block of each user in a file, in no particular order of identifiers."""
    for number in range(plan.users + round(plan.users * plan.churn / 3) * plan.generation):
        version = _version(plan, number)
        if version is not None:
            block = _user(role, plan.seed, number, version)
            if block:
                yield block


def _version(plan: Plan, number: int) -> int | None:
    """The generation in which a user last changed; None while it is not listed."""
    per_step = round(plan.users * plan.churn / 3)
    since = 0 if number < plan.users or not per_step else (number - plan.users) // per_step + 1
    version = since
    for step in range(since + 1, plan.generation + 1):
        roll = _roll(plan.seed, number, step) / 2**32
        if roll < plan.churn / 3:
            return None
        if roll < plan.churn * 2 / 3:
            version = step
    return version


def _roll(seed: int, number: int, salt: int) -> int:
    return int.from_bytes(hashlib.blake2b(b"%d/%d/%d" % (seed, number, salt), digest_size=4).digest(), "big")


def _user(role: str, seed: int, number: int, version: int) -> str:
    roll = _roll(seed, number, 1_000_000)
    if role == "GB" and roll % 5 == 0:
        return ""
    identifier = f"{(number * 7_919 + 1) % 10_000_000_000:0{10 if roll % 4 else 11}d}"
    title = f"{_NAMES[roll % 12]} {_NAMES[roll // 12 % 12]} {_FORMS[roll // 144 % 5]}"
    if version:
        title += f" {version}"
    first = _time(roll)
    kind, account = "KAMU" if roll % 50 == 0 else "OZEL", _ACCOUNTS[roll // 7 % 3]
    documents = [("Invoice", _aliases(role, identifier, roll, version, ""))]
    if roll % 3 == 0:
        documents.append(("DespatchAdvice", _aliases(role, identifier, roll, version, "irsaliye")))
    if roll % 500 == 1:
        documents.reverse()
    inner = "".join(
        f'            <Document type="{name}">\n{text}            </Document>\n' for name, text in documents
    )
    return (
        f"    <User>\n        <Identifier>{identifier}</Identifier>\n        <Title>{escape(title)}</Title>\n"
        f"        <Type>{kind}</Type>\n        <FirstCreationTime>{first}</FirstCreationTime>\n"
        f"        <AccountType>{account}</AccountType>\n        <Documents>\n{inner}        </Documents>\n    </User>\n"
    )


def _aliases(role: str, identifier: str, roll: int, version: int, word: str) -> str:
    name = f"urn:mail:{word or 'default'}{role.lower()}@{identifier}.example"
    text = _alias(name, _time(roll + version), "")
    if roll % 10 < 4:
        text += _alias(name, _time(roll // 3), _time(roll // 2))
    if roll % 100 == 3:
        text += _alias(f"urn:mail:second{role.lower()}@{identifier}.example", _time(roll // 5), "")
    return text


def _alias(name: str, created: str, deleted: str) -> str:
    ended = f"                    <DeletionTime>{deleted}</DeletionTime>\n" if deleted else ""
    return (
        f"                <Alias>\n                    <Name>{name}</Name>\n"
        f"                    <CreationTime>{created}</CreationTime>\n{ended}                </Alias>\n"
    )


def _time(roll: int) -> str:
    year, day = 2014 + roll // 7 % 12, roll % 336
    date = f"{year}-{1 + day // 28:02d}-{1 + day % 28:02d}"
    return f"{date}T{roll // 11 % 24:02d}:{roll // 13 % 60:02d}:{roll // 17 % 60:02d}"
