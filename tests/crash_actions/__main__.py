"""`python -m tests.crash_actions [--kills N] [--store sqlite|postgres|both]`: kill real servers while plans run, once
with providers that answer, and once on a bad day of providers and brokers too."""

from __future__ import annotations

import sys

from tests.crash_actions.run import BadDayRun, PlansRun
from tests.crash_http.__main__ import main

KILLS = 100

if __name__ == "__main__":
    good_day = main(PlansRun, "while plans run", KILLS)
    sys.exit(good_day or main(BadDayRun, "on a bad day of providers and brokers", KILLS))
