"""Ulak's log lines in somebody else's process: nothing on standard output, and each host gets them its own way."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from ulak.log import get_logger

ROOT = Path(__file__).parents[2]

APPLICATION = """
import asyncio

from ulak import Ulak

ulak = Ulak("sqlite:///shop.db")
ran = asyncio.Event()


@ulak.handles("greet")
async def greet(job):
    print("Merhaba,", job.payload["name"])
    ran.set()


async def main():
    async with ulak, Ulak("memory:") as other:
        await other.notify.send("SMS", "+905551112233", "Merhaba")
        await ulak.enqueue("greet", {"name": "Ayşe"})
        await ran.wait()


asyncio.run(main())
"""


@pytest.fixture
def log():
    """Structlog as a host has it that has not configured it."""
    before = structlog.get_config(), structlog.is_configured()
    structlog.reset_defaults()
    yield get_logger("ulak.shop")
    structlog.reset_defaults()
    if before[1]:
        structlog.configure(**before[0])


def test_an_application_that_configures_nothing_prints_its_own_lines_and_no_others(tmp_path):
    done = run(APPLICATION, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Merhaba, Ayşe\n"
    assert all(line.startswith("discarded jobs=1 ") for line in done.stderr.splitlines())  # it is a warning


def test_without_a_word_of_the_host_information_is_not_printed_and_a_warning_goes_to_standard_error(tmp_path):
    done = run(
        "from ulak.log import get_logger\nlog = get_logger('ulak')\nlog.info('open')\nlog.warning('full', jobs=3)",
        tmp_path,
    )
    assert done.stdout == ""
    assert done.stderr == "full jobs=3\n"


def test_a_host_with_logging_gets_records_of_our_loggers(log, caplog):
    caplog.set_level(logging.INFO, logger="ulak")
    log.info("stopped", finished=3, note="100 % done")
    [record] = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == (
        "ulak.shop",
        "INFO",
        "stopped finished=3 note='100 % done'",
    )
    assert (record.funcName, record.filename) == (
        "test_a_host_with_logging_gets_records_of_our_loggers",
        Path(__file__).name,
    )


def test_a_host_that_configures_structlog_later_gets_events_from_then_on(log, caplog):
    log.warning("before")
    events = []
    structlog.configure(processors=[lambda _logger, _method, event: events.append(event) or drop()])
    log.warning("after", jobs=1)
    assert [record.getMessage() for record in caplog.records] == ["before"]
    assert events == [{"event": "after", "jobs": 1}]


def test_what_the_standard_library_gets_is_masked_tracebacks_too(log, caplog):
    try:
        raise ValueError("no such mailbox: ayse@example.com")
    except ValueError:
        log.exception("not_sent", recipient="+905551112233")
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is None  # a host's formatter would write it unmasked
    assert record.getMessage().startswith("not_sent recipient='***33'\nTraceback (most recent call last):\n")
    assert record.getMessage().endswith("ValueError: no such mailbox: a***@example.com")


def drop():
    raise structlog.DropEvent


def run(script, folder):
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
