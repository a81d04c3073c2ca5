"""A writing connection as the writer needs it, and the ends that a batch on it can come to."""

from __future__ import annotations

from typing import Protocol

from ulak.spine.store import Tx


class CommitUnknown(Exception):
    """The commit was sent, and its answer was lost."""


class SessionLost(Exception):
    """The session broke before the commit: nothing of the batch is kept."""


class BatchFailed(Exception):
    """Nothing of the batch is kept, and running it again would not help."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Fatal(Exception):
    """The store can't be trusted any more in this process."""


class Session(Protocol):
    """A connection as the writer needs it. Driver errors are translated here."""

    def turn_to_next_batch(self) -> None:
        """Forget the contention that the last batch met."""

    def begin(self) -> Tx: ...

    def savepoint(self) -> None: ...

    def release(self) -> None: ...

    def rollback_to(self) -> None:
        """Undo the item after the savepoint; raises SessionLost when the whole transaction is gone."""

    def commit(self, tx: Tx) -> None:
        """Write the events and counts of `tx` and commit. Raises CommitUnknown, SessionLost or Fatal."""

    def rollback(self) -> None: ...

    def reopen(self) -> None:
        """Open the session anew, waiting for the database with growing pauses; raises Fatal to give up."""

    def committed(self) -> bool:
        """Whether the last commit that was tried is there."""

    def translate(self, error: Exception) -> Exception:
        """A driver's error as the caller should see it."""

    def lost(self, error: BaseException) -> bool:
        """Whether this error means that the session is gone."""

    def close(self) -> None: ...
