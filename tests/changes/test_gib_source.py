"""GİB's lists as they really are: every oddity that was counted in one, and the pattern that agrees with expat."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.changes.lists import Alias, User, document, invoice
from ulak.changes import turkish
from ulak.changes.sources import gib_block
from ulak.changes.sources.gib import GibSource
from ulak.changes.sources.source import BadRecord, Opened

SOURCE = GibSource()


def block(user: User) -> bytes:
    return user.xml().strip().encode()


def parts(role: str, user: User) -> dict:
    return dict(SOURCE.parse(role, block(user)).parts)


def merged(pk: User | None = None, gb: User | None = None, feed: str = "einvoice"):
    found = {}
    for role, user in (("PK", pk), ("GB", gb)):
        part = None if user is None else parts(role, user).get(feed)
        if part is not None:
            found[role] = part
    return SOURCE.merge(feed, (pk or gb).identifier, found)


def names(record) -> list[tuple[str, str]]:
    return [(alias["alias"], alias["type"]) for alias in record.fields["aliases"]]


def test_leading_zeros_stay():
    assert SOURCE.parse("PK", block(invoice("0012345678", "a"))).identifier == "0012345678"


def test_an_alias_with_a_deletion_time_is_dead():
    user = User("1", documents={"Invoice": [Alias("a"), Alias("b", deleted="2021-12-11T16:44:31")]})
    assert names(merged(user)) == [("a", "PK")]


def test_a_name_that_is_deleted_and_live_is_live():
    user = User("1", documents={"Invoice": [Alias("a"), Alias("a", "2019-01-01T00:00:00", "2020-01-01T00:00:00")]})
    record = merged(user)
    assert names(record) == [("a", "PK")]
    assert record.fields["aliases"][0]["creationTime"] == "2023-07-22T13:58:28"


def test_the_same_live_name_twice_is_kept_twice():
    user = User("1", documents={"Invoice": [Alias("a", "2020-01-01T00:00:00"), Alias("a", "2019-01-01T00:00:00")]})
    assert [alias["creationTime"] for alias in merged(user).fields["aliases"]] == [
        "2019-01-01T00:00:00",
        "2020-01-01T00:00:00",
    ]


def test_names_that_differ_in_case_alone_are_two():
    assert names(merged(invoice("1", "urn:mail:a", "urn:mail:A"))) == [("urn:mail:A", "PK"), ("urn:mail:a", "PK")]


def test_a_document_without_a_live_alias_is_named_but_has_no_part():
    user = User("1", documents={"DespatchAdvice": [Alias("a", deleted="2020-01-01T00:00:00")]})
    assert parts("PK", user) == {"edespatch": None}


def test_despatch_may_stand_before_invoice_and_alone():
    both = User("1", documents={"DespatchAdvice": [Alias("d")], "Invoice": [Alias("i")]})
    assert set(parts("PK", both)) == {"einvoice", "edespatch"}
    assert set(parts("PK", User("1", documents={"DespatchAdvice": [Alias("d")]}))) == {"edespatch"}


def test_names_without_a_prefix_with_blanks_and_capitals_are_kept_as_they_are():
    odd = ["defaultpk", "urn:main:x", " urn:mail:blank ", "URN:MAIL:BIG"]
    assert {name for name, _ in names(merged(invoice("1", *odd)))} == set(odd)


def test_blanks_of_a_title_stay():
    assert merged(invoice("1", "a", title="  İKİ  BOŞLUK ")).fields["title"] == "  İKİ  BOŞLUK "


def test_an_alias_older_than_its_user_is_kept():
    user = User("1", first="2024-01-01T00:00:00", documents={"Invoice": [Alias("a", "2014-01-01T00:00:00")]})
    assert merged(user).fields["aliases"][0]["creationTime"] == "2014-01-01T00:00:00"


def test_the_role_comes_from_the_file_and_never_from_the_name():
    assert names(merged(invoice("1", "urn:mail:defaultgb@x"))) == [("urn:mail:defaultgb@x", "PK")]


def test_two_names_in_one_alias_are_two_aliases():
    text = block(invoice("1", "a")).replace(b"<Name>a</Name>", b"<Name>a</Name><Name>b</Name>")
    assert [name for name, _ in SOURCE.parse("PK", text).parts["einvoice"][1]] == ["a", "b"]


def test_an_account_type_may_be_missing():
    assert merged(invoice("1", "a", account=None)).fields["accountType"] is None


def test_unknown_document_types_are_left_out():
    assert parts("PK", User("1", documents={"Other": [Alias("a")]})) == {}


def test_entities_are_read():
    assert merged(invoice("1", "a", title='A & B <"C">')).fields["title"] == 'A & B <"C">'


def test_a_number_reference_and_cdata_are_read_by_expat():
    text = block(invoice("1", "a", title="XX")).replace(b"XX", b"<![CDATA[A & B]]> &#304;")
    assert gib_block.read_user(text).title == "A & B İ"


def test_the_flat_form_is_read():
    text = (
        b"<User><Identifier>1</Identifier><Alias>urn:mail:a</Alias><Title>T</Title><Type>\xc3\x96zel</Type>"
        b"<FirstCreationTime>2015-01-01T00:00:00</FirstCreationTime>"
        b"<AliasCreationTime>2016-01-01T00:00:00</AliasCreationTime><AccountType>1</AccountType></User>"
    )
    parsed = SOURCE.parse("PK", text)
    assert SOURCE.repeats(text)
    assert SOURCE.merge("einvoice", "1", {"PK": parsed.parts["einvoice"]}).fields == {
        "title": "T",
        "accountType": "1",
        "type": "Özel",
        "firstCreationTime": "2015-01-01T00:00:00",
        "aliases": [{"alias": "urn:mail:a", "type": "PK", "creationTime": "2016-01-01T00:00:00"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        b"<User><Title>no identifier</Title></User>",
        b"<User><Identifier> </Identifier></User>",
        b"<User><Identifier>1</Identifier><Title>&unknown;</Title></User>",
        b"<User><Identifier>1</Identifier><Title>open</User>",
        b"<User><Identifier>1</Identifier><FirstCreationTime>yesterday</FirstCreationTime></User>",
        b"<User><Identifier>1</Identifier><FirstCreationTime>2019-02-30T00:00:00</FirstCreationTime></User>",
    ],
)
def test_a_record_that_cant_be_read_says_so(text):
    with pytest.raises(BadRecord):
        SOURCE.parse("PK", text)


def test_the_largest_value_of_each_column_is_taken_by_code_point():
    pk = invoice("1", "p", title="AÇIK", type="OZEL", account="A", first="2020-01-01T00:00:00")
    gb = invoice("1", "g", title="Zebra", type="KAMU", account="Ö", first="2019-01-01T00:00:00")
    record = merged(pk, gb)
    assert record.fields["title"] == "Zebra"
    assert record.fields["accountType"] == "Ö"
    assert record.fields["type"] == "OZEL"
    assert record.fields["firstCreationTime"] == "2020-01-01T00:00:00"
    assert record.mixed


def test_a_file_without_a_live_alias_does_not_count_in_the_merge():
    dead = User("1", title="ZZZ", documents={"Invoice": [Alias("g", deleted="2020-01-01T00:00:00")]})
    assert merged(invoice("1", "p", title="AAA"), dead).fields["title"] == "AAA"


def test_aliases_go_by_name_then_by_role():
    assert names(merged(invoice("1", "b", "a"), invoice("1", "a", "c"))) == [
        ("a", "GB"),
        ("a", "PK"),
        ("b", "PK"),
        ("c", "GB"),
    ]


def test_the_content_hash_is_the_seeds():
    import hashlib

    record = merged(invoice("0123456789", "p", title="IŞIK İŞ"), invoice("0123456789", "g", title="IŞIK İŞ"))
    text = "0123456789" + "ışık iş" + "OZELENTEGRASYON" + "OZEL" + "2019-05-02 10:11:12" + "g:GB,p:PK"
    assert record.content_hash == hashlib.md5(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("title", "lowered"), [("IŞIK", "ışık"), ("İNŞAAT", "inşaat"), ("Iİıi", "ıiıi"), ("ÇĞÖÜ", "çğöü")]
)
def test_lower_case_is_turkish(title, lowered):
    assert turkish.lower(title) == lowered


def test_a_part_is_found_again_in_the_published_record():
    pk = invoice("1", "p", "q", title="A", first="2020-01-01T00:00:00")
    gb = invoice("1", "g", title="B", first="2019-01-01T00:00:00")
    record = merged(pk, gb)
    again = {role: SOURCE.part_of(role, record.fields, record.parts) for role in ("PK", "GB")}
    assert SOURCE.merge("einvoice", "1", again) == record


texts = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=12
) | st.sampled_from(["A&B", "]]>", "a\r\nb", "\x0b", "  x ", "İI"])
aliases = st.builds(Alias, texts, st.just("2020-01-01T00:00:00"), st.sampled_from([None, "2021-01-01T00:00:00"]))
users = st.builds(
    User,
    st.from_regex(r"[0-9]{10,11}", fullmatch=True),
    texts,
    texts,
    st.just("2019-05-02T10:11:12"),
    st.none() | texts,
    st.dictionaries(st.sampled_from(["Invoice", "DespatchAdvice", "Other"]), st.lists(aliases, max_size=3), max_size=3),
)


@given(users)
def test_the_pattern_agrees_with_expat(user):
    text = user.xml().strip()
    try:
        slow = gib_block.read_with_expat(text.encode())
    except BadRecord:
        with pytest.raises(BadRecord):
            gib_block.read_user(text.encode())
        return
    assert gib_block.read_user(text.encode()) == slow


def test_usual_records_are_read_by_the_pattern(monkeypatch, tmp_path):
    from ulak.changes.generator import Plan, users_of

    monkeypatch.setattr(gib_block, "read_with_expat", None)
    blocks = list(users_of("PK", Plan(200)))
    assert len([gib_block.read_user(text.strip().encode()) for text in blocks]) == 200


def test_blocks_are_cut_wherever_a_chunk_ends(monkeypatch):
    from ulak.changes.sources import cut

    content = document([invoice(f"{number}", f"a{number}") for number in range(30)])

    def cut_all():
        return [one for batch in cut.cut(io.BytesIO(content), "User", "UserList") for one in batch]

    whole = cut_all()
    for size in (7, 64, 301):
        monkeypatch.setattr(cut, "CHUNK_BYTES", size)
        assert cut_all() == whole
    assert len(whole) == 30


def test_a_mark_at_the_beginning_is_no_harm():
    content = b"\xef\xbb\xbf" + document([invoice("1", "a")])
    assert list(map(len, SOURCE.blocks("PK", Opened(io.BytesIO(content), Path("newUserPkList.xml").name)))) == [1]
