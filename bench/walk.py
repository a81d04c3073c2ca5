"""`python -m bench.walk`: the functions and files of ours that one POST goes through, from the socket to its 202.

On SQLite with an idle worker, traced by `sys.setprofile` in every thread of ours. Comprehensions, clocks, probes and
trivial getters are left out; of several requests the shortest walk counts, since a loop may wake up in between.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ulak
from ulak import Ulak
from ulak.http.app import build_app
from ulak.http.server import listen, listening
from ulak.settings import Settings

SOURCE = str(Path(ulak.__file__).parent)
REQUESTS = 12
WARMUP = 4
GETTER_BYTES = 20  # of a function without arguments that returns an attribute
BODY = {"notificationType": "WEBHOOK", "recipient": "http://127.0.0.1:9/hook", "body": "hello"}


@dataclass
class Walk:
    """The calls of one request, in their order. A thread may interleave with the loop."""

    on: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_name == "write" and code.co_filename.endswith("asyncio/selector_events.py"):
            self.on = False  # the answer leaves
        if self.on and event == "call" and code.co_filename.startswith(SOURCE) and _counts(code):
            self.calls.append((code.co_filename[len(SOURCE) + 1 :], code.co_qualname))  # type: ignore[attr-defined]

    @property
    def functions(self) -> int:
        return len(set(self.calls))

    @property
    def files(self) -> int:
        return len({file for file, _ in self.calls})


def _counts(code: CodeType) -> bool:
    if code.co_name.endswith(("comp>", "genexpr>")) or code.co_filename.endswith(("/clock.py", "/probe.py")):
        return False
    return code.co_argcount > 1 or len(code.co_code) > GETTER_BYTES


async def _walks(folder: str, walk: Walk) -> list[Walk]:
    settings = Settings(store=f"sqlite:///{folder}/walk.db", http={"port": 0})
    listener, found = listen(settings.http), []
    async with Ulak(settings=settings) as opened:
        door = build_app(opened)
        async with door.life(), listening(door, listener):
            for _ in range(REQUESTS):
                await asyncio.sleep(0.2)  # the worker is idle again
                walk.calls = []
                status = await asyncio.to_thread(_post, listener.getsockname()[1], walk)
                assert status == 202, status
                found.append(Walk(calls=walk.calls))
    listener.close()
    return found[WARMUP:]


def _post(port: int, walk: Walk) -> int:
    """On a thread whose calls are not ours; the walk begins with the request."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.connect()
    walk.on = True
    client.request("POST", "/api/notifications", json.dumps(BODY), {"content-type": "application/json"})
    status = client.getresponse().status
    client.close()
    return status


def main() -> None:
    walk = Walk()
    threading.setprofile(walk.trace)
    sys.setprofile(walk.trace)
    with tempfile.TemporaryDirectory(prefix="bench-walk-", ignore_cleanup_errors=True) as folder:
        shortest = min(asyncio.run(_walks(folder, walk)), key=lambda one: one.functions)
    sys.setprofile(None)
    for file, function in dict.fromkeys(shortest.calls):
        print(f"{file}: {function}")
    print(f"socket to 202: {shortest.functions} functions in {shortest.files} files")


if __name__ == "__main__":
    main()
