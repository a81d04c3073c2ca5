"""The room on each kind of store, with scripts that succeed, fail, hang and die."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from ulak import Job, Ulak
from ulak.compute import Task, TaskType
from ulak.settings import Settings

SCRIPTS = Path(__file__).parent / "scripts"


def write_scripts(folder):
    return str(shutil.copytree(SCRIPTS, folder))


def settings_of(address, root, **sections):
    compute = {"script_root": root, "cpu_workers": 1, "io_threads": 4, **sections.pop("compute", {})}
    spine = {"retry_first_seconds": 0.001, "retry_cap_seconds": 0.01, **sections.pop("spine", {})}
    return Settings(store=address, compute=compute, spine=spine, **sections)


def build(address, root, *, work=True, **sections):
    return Ulak(address, settings=settings_of(address, root, **sections), work=work)


def task(name, params=None, *, cpu=False, retries=0, **options):
    return Task.create(name, params, TaskType.CPU_BOUND if cpu else TaskType.IO_BOUND, retries, **options)


# Handlers of the process lane: sent by name, so they are here.


def where(job: Job):
    return {"pid": os.getpid(), "payload": job.payload, "attempt": job.attempt}


def die_the_first_time(job: Job):
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return [job.attempt, job.uncertain]


def never_returns(job: Job):
    Path(job.payload["started"]).write_text("1")
    Path(job.payload["gate"]).read_text()
