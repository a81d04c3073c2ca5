"""`python -m tests.crash_dispatch [--kills N] [--store sqlite|postgres|both]`: kill real processes while tasks are
opened and answered."""

from __future__ import annotations

import sys

from tests.crash_dispatch.run import DispatchRun
from tests.crash_http.__main__ import main

if __name__ == "__main__":
    sys.exit(main(DispatchRun, "while tasks are opened and answered"))
