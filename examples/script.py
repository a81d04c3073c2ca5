"""A script: enqueue, work until nothing waits, and end. Kill it in the middle and start it again: it goes on.

python script.py 5
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from ulak import Job, Ulak

ulak = Ulak("sqlite:///script.db")


@dataclass
class Letter:
    number: int


@ulak.handles("letter.write", payload=Letter)
async def write(job: Job[Letter]) -> None:
    print(f"letter {job.payload.number}", flush=True)


async def main(letters: int) -> None:
    async with ulak:
        for number in range(1, letters + 1):
            await ulak.enqueue("letter.write", Letter(number), unique_key=f"letter-{number}")
        while await ulak.jobs.counts():
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
