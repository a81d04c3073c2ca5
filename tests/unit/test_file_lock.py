"""The lock of a SQLite store: one holder, and any number that look."""

from __future__ import annotations

import os

import pytest

from ulak.errors import Conflict
from ulak.stores.sqlite import file_lock
from ulak.stores.sqlite.file_lock import FileLock, holder


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "ulak.db.lock"
    found.write_text("pid 1")  # who had it last, and is gone
    return found


def looking(path, monkeypatch):
    """The file of a command that is in the middle of `holder`: closed again by whoever calls this."""
    copies = []

    def watched(file, kind):
        copies.append(os.dup(file.fileno()))  # the lock is there as long as a descriptor of this opening is
        return lock(file, kind)

    lock = file_lock._lock
    with monkeypatch.context() as patch:
        patch.setattr(file_lock, "_lock", watched)
        assert holder(path) is None
    (copy,) = copies
    return copy


def test_a_store_that_is_opened_while_somebody_looks_is_opened_when_he_has_seen_enough(path, monkeypatch):
    looker = looking(path, monkeypatch)
    pauses = []
    monkeypatch.setattr(file_lock, "sleep", lambda _: pauses.append(os.close(looker)))
    lock = FileLock(path)
    lock.take()
    assert len(pauses) == 1
    assert holder(path) == f"pid {os.getpid()}"
    lock.release()
    assert holder(path) is None


def test_two_that_look_at_once_do_not_take_each_other_for_a_holder(path, monkeypatch):
    looker = looking(path, monkeypatch)
    assert holder(path) is None
    os.close(looker)


def test_a_store_that_is_held_is_refused_without_waiting(path, monkeypatch):
    first = FileLock(path)
    first.take()
    monkeypatch.setattr(file_lock, "sleep", lambda _: pytest.fail("it waited"))
    with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
        FileLock(path).take()
    first.release()


def test_who_looks_for_ever_is_not_waited_for(path, monkeypatch):
    looker = looking(path, monkeypatch)
    pauses = []
    monkeypatch.setattr(file_lock, "sleep", pauses.append)
    with pytest.raises(Conflict, match="another process"):
        FileLock(path).take()
    os.close(looker)
    assert 0.1 < sum(pauses) < 0.3
