"""How a durable task failed for good, as text of a dead letter: readable to people, and read back into a result."""

from __future__ import annotations

import re
from typing import NamedTuple

from ulak.compute.model import Result, TaskStatus

# Together below the 2,000 characters that the spine keeps of a cause.
_MAX_ERROR_CHARACTERS = 600
_MAX_SECTIONS = {"traceback": 600, "stdout": 250, "stderr": 350}
_HEADING = "\n--- {}\n"
_CAUSE = re.compile(r"(FAILED|TIMED_OUT|CRASHED) after \d+ attempt\(s\)(?: on (\S+))?: ", re.ASCII)
# A task without retries must not run twice; a stop of the worker ended its only run.
CUT_OFF = "the worker was stopped during this attempt; it may have had its effect and waits for a decision"
_DEATHS = ("poison", "the process died", CUT_OFF)  # of the process that ran it, as the spine and we say it


class TaskEnd(NamedTuple):
    status: TaskStatus
    error: str
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    worker: str | None = None


def cause_of(result: Result, attempt: int) -> str:
    """The end of each text is kept: there the trouble is."""
    place = f" on {result.worker_id}" if result.worker_id else ""
    first = f"{result.status} after {attempt} attempt(s){place}: {str(result.error)[:_MAX_ERROR_CHARACTERS]}"
    sections = {"traceback": result.traceback, "stdout": result.stdout, "stderr": result.stderr}
    kept = {name: (text or "")[-_MAX_SECTIONS[name] :] for name, text in sections.items()}
    return first + "".join(_HEADING.format(name) + text for name, text in kept.items() if text)


def read_cause(cause: str) -> TaskEnd:
    """A cause that is not ours is an error and nothing else."""
    parts = dict.fromkeys(_MAX_SECTIONS, "")
    error = cause.removeprefix("Permanent: ")
    for name in reversed(_MAX_SECTIONS):
        error, _, parts[name] = _split(error, _HEADING.format(name))
    if cause.startswith(_DEATHS):
        return TaskEnd(TaskStatus.CRASHED, error, **parts)
    found = _CAUSE.match(error)
    if found is None:
        return TaskEnd(TaskStatus.FAILED, error, **parts)
    return TaskEnd(TaskStatus(found[1]), error[found.end() :], **parts, worker=found[2])


def _split(text: str, heading: str) -> tuple[str, str, str]:
    before, found, after = text.rpartition(heading)
    return (before, found, after) if found else (text, "", "")
