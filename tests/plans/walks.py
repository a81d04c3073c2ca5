"""Statements that look at everything on purpose: once at the start, in a sample, or by hand."""

from __future__ import annotations

# Tables that have few rows however long a store is used.
SMALL = {
    "access_key",
    "breaker",
    "capacity",
    "changes_feed",
    "channels_endpoint",
    "credit",
    "cron",
    "event_follower",
    "kind_control",
    "owner",
    "tally",
}
WALKS = {
    "ulak.actions.count_runs": "in a sample",
    "ulak.buses.count_waiting": "when a process becomes the relay",
    "ulak.changes.prune_syncs": "one row a sync, looked at once a minute",
    "ulak.changes.search_titles": "until it has found enough, within a reader's time",
    "ulak.dispatch.count_live_tasks": "over an index of live tasks alone",
    "ulak.dispatch.count_shares": "in a sample",
    "ulak.spine.count_dead_causes": "for a person, within a reader's time",
    "ulak.spine.count_live": "at the start of the first process",
    "ulak.spine.count_waiting": "in a sample, every few seconds at most",
    "ulak.spine.find_alone": "over an index of jobs that several processes have died with",
    "ulak.spine.find_cancelled": "over an index of an owner's running jobs",
    "ulak.spine.find_leaseholders": "over an index of running jobs alone",
    "ulak.spine.hold_jobs": "after a restore, by hand",
    "ulak.spine.read_tally": "in a sample; the outbox is folded every second",
    "ulak.spine.release_held": "after a restore, by hand",
    "ulak.stores.postgres.count_free": "at the recount, in one process",
    "ulak.stores.postgres.find_reservations": "over the outbox, which is folded every second",
    "ulak.stores.postgres.find_token": "over the outbox, after a commit whose reply was lost",
    "ulak.stores.postgres.newest_id": "over the outbox, once at the start",
    "ulak.stores.postgres.read_gauges": "in a sample; the outbox is folded every second",
}
# Reads whose plan is right once the full tables were analyzed, by the server or after a load.
BY_STATISTICS = {
    "ulak.actions.list_unreachable",
    "ulak.changes.list_versions_of",
    "ulak.spine.list_jobs",
    "ulak.spine.page_dead",
    "ulak.spine.weigh_dead",
}
