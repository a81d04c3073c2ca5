"""ANALYZE: the planner gets statistics of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ulak.errors import Invalid
from ulak.spine.query import Query
from ulak.spine.store import Tx

_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def analyze(tx: Tx, tables: Sequence[str]) -> None:
    """Only tables that a room names: the plans for the queue's own tables must not change."""
    for table in tables:
        if not _TABLE.fullmatch(table):
            raise Invalid(f"{table!r:.80} is not a table's name; give names like changes_item")
        tx.execute(Query("analyze", f"ANALYZE {table}", f"ANALYZE {table}", ()))
