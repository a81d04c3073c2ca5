"""`ulak demo crash`, run as a user runs it: a server dies by SIGKILL, and nothing that was accepted is lost."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.processes import command
from ulak.cli.commands.demo import _told
from ulak.cli.crash_demo import Ledger


@pytest.mark.slow
def test_a_short_run_kills_the_server_and_loses_nothing(folder):
    done = command(folder, "demo", "crash", "--kills", "2", "--json")
    ledger = json.loads(done.stdout)
    assert ledger["kills"] == 2
    assert ledger["accepted"] == ledger["arrived"] > 0
    assert (ledger["lost"], ledger["unexplained"], ledger["accounted"]) == ([], [], True)
    assert len(re.findall(r"^accepted \d+ .* lost 0$", done.stderr, re.MULTILINE)) == 2
    assert list(folder.iterdir()) == []


def test_a_message_that_never_arrived_makes_the_ledger_unclean():
    ledger = Ledger(killed=1, accepted={"a", "b"}, accounted=True)
    ledger.arrivals["a"] = 2
    ledger.lost = {"b"}
    assert not ledger.is_clean
    assert "lost                1" in _told(ledger)
    assert ledger.twice == ["a"]


def test_the_ledger_fits_a_terminal_of_80_columns():
    ledger = Ledger(killed=10_000, posts=1_234_567, unanswered=123_456, uncertain=12_345, accounted=True)
    assert [line for line in _told(ledger).splitlines() if len(line) > 80] == []


def test_only_an_account_that_was_taken_can_balance():
    assert not Ledger().is_clean
    assert Ledger(accounted=True).is_clean
