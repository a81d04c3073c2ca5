"""Every promise of the README, and the test that tries to make it false; a promise without one can't be written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
OUTSIDE = "outside/test_promises.py"

PROMISES = {
    "accepted is on disk before you get your answer": [
        (OUTSIDE, "test_an_answer_follows_a_sync_of_the_disk"),
        ("crash_http/test_kills.py", "test_what_was_answered_with_202_is_delivered_whoever_is_killed"),
    ],
    "A process that dies gives its work back": [
        (OUTSIDE, "test_a_process_that_dies_gives_its_work_back_and_its_attempt_is_called_uncertain")
    ],
    "is called *uncertain*": [
        (OUTSIDE, "test_a_process_that_dies_gives_its_work_back_and_its_attempt_is_called_uncertain")
    ],
    "A dead receiver costs the others nothing": [
        ("outside/test_neighbours.py", "test_a_dead_receiver_costs_the_others_nothing"),
        ("outside/test_neighbours.py", "test_two_servers_on_one_database_beside_a_dead_receiver"),
    ],
    "One process and one file to start with": [(OUTSIDE, "test_it_is_one_process_and_one_file")],
    "pip install ulak": [("wheel.py", "main")],
    "runs it, now or after the next power cut": [
        ("docs/test_readme.py", "test_a_job_of_the_readme_is_accepted_by_one_process_and_run_by_another")
    ],
    "order and bulkheads per key": [
        (OUTSIDE, "test_jobs_of_a_key_run_in_order_whoever_dies"),
        ("outside/test_neighbours.py", "test_slow_receivers_hold_up_no_other"),
    ],
    "priorities": [("flow/test_order.py", "test_urgent_work_goes_first")],
    "timers to the millisecond": [
        (OUTSIDE, "test_a_timer_is_kept_to_the_millisecond_and_never_early"),
        ("flow/test_timers.py", "test_a_job_runs_at_its_time_to_the_millisecond"),
        ("flow/test_timers.py", "test_an_earlier_newcomer_wakes_the_timers_without_help"),
    ],
    "retries": [("contract/test_jobs.py", "test_a_retry_comes_back_when_it_is_due_with_one_attempt_more")],
    "cron": [("flow/test_timers.py", "test_a_cron_entry_fires_once_per_time_and_survives_a_restart")],
    "dead letters that can be edited and sent again": [(OUTSIDE, "test_a_dead_letter_is_edited_and_sent_again")],
    "bounds with an answer": [
        ("outside/test_neighbours.py", "test_at_a_full_bound_a_request_is_refused_in_time_and_readyz_says_why")
    ],
    "events in commit order": [
        (OUTSIDE, "test_events_come_in_commit_order_to_whoever_follows_and_whoever_reads_later")
    ],
    "your own transaction": [
        ("contract/test_postgres_caller.py", "test_a_job_exists_when_the_callers_transaction_commits"),
        ("contract/test_postgres_caller.py", "test_a_job_goes_when_the_callers_transaction_rolls_back"),
    ],
    "stay out of private networks": [(OUTSIDE, "test_webhooks_stay_out_of_private_networks")],
    "signed webhooks": [
        ("notify/test_webhooks.py", "test_a_registered_endpoint_gets_signed_messages_and_rotation_overlaps")
    ],
    "inboxes with a live stream": [
        (
            "api/test_notify_inbox.py",
            "test_a_stream_that_breaks_off_again_and_again_misses_nothing_and_repeats_nothing",
        )
    ],
    "Mail is simulated until you switch that off": [
        ("notify/test_providers.py", "test_as_installed_all_of_them_are_simulated")
    ],
    "providers until you give credentials": [
        ("notify/test_providers.py", "test_as_installed_all_of_them_are_simulated")
    ],
    "each with a deadline that no crash loses": [
        ("crash_dispatch/test_kills.py", "test_no_task_deadline_or_message_is_lost_whoever_is_killed")
    ],
    "with or without a store": [
        ("docs/test_readme.py", "test_the_engine_of_the_readme_computes"),
        ("compute/test_room_processes.py", "test_accepted_tasks_survive_the_kill_of_the_server"),
    ],
    "a change feed that no consumer can lose": [
        ("changes/test_kills.py", "test_a_kill_at_any_step_loses_and_doubles_nothing")
    ],
    "whatever a provider does": [
        (
            "crash_actions/test_kills.py",
            "test_on_a_bad_day_of_providers_brokers_and_processes_nothing_is_lost_or_sent_twice_unsaid",
        )
    ],
    "says what needs a person and what heals by itself": [
        ("console/test_pages.py", "test_the_overview_tells_what_needs_a_person_from_what_heals_by_itself"),
        ("browser/test_pages.py", "test_every_page_of_a_busy_town_reads_well"),
    ],
    "in English and Turkish": [
        ("console/test_pages.py", "test_every_page_opens_in_both_languages"),
        ("console/test_words.py", "test_every_word_has_its_turkish"),
    ],
    "follows work from a request to its webhook": [
        ("otel/test_http.py", "test_a_notification_carries_its_trace_from_the_request_to_the_webhook")
    ],
    'answers "is it well?" in the terminal': [("cli/test_status.py", "test_a_running_server_is_asked")],
    "a server is killed again and again while a client posts": [
        ("cli/test_demo_crash.py", "test_a_short_run_kills_the_server_and_loses_nothing")
    ],
    "starts Ulak on SQLite with a simulated town": [
        (
            "cli/test_story.py",
            "test_all_rooms_work_and_a_change_of_the_list_starts_a_plan_and_a_second_start_goes_on",
        )
    ],
}


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_of_the_readme_has_a_test_that_tries_to_make_it_false(promise):
    assert promise in README
    for file, name in PROMISES[promise]:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"def {name}\(", text), name
