"""The command's way in, and `python -m ulak`. It loads the commands only for who wants one of them."""

from __future__ import annotations

import sys
from importlib.metadata import version


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"ulak {version('ulak')}\n")
        return
    from ulak.cli import main as run  # half a second, which the release need not wait for

    run()


if __name__ == "__main__":
    main()
